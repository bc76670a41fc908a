package api

import (
	"net/http"

	"dispatcher/cmd/dispatcher/internal/access"
)

const (
	get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
	view, operate  = access.View, access.Operate
)

// routes registers all operations.
func (a *API) routes() {
	a.statusRoutes()
	a.routingRoutes()
	a.weightRoutes()
	a.limitRoutes()
	a.messageRoutes()
	a.optOutRoutes()
	a.problemRoutes()
	a.reportRoutes()
}

func (a *API) statusRoutes() {
	serve(a, operation{get, "/whoami", "whoami", "access", "Who you are", anybody, 0}, a.whoami)

	serve(a, operation{get, "/status", "status", "status", "How the dispatcher does now", view, 0},
		a.status)
	a.live(operation{
		get, "/live", "live", "status", "The status as a stream of events, when it changes", view, 0,
	})
	serve(a, operation{
		get, "/instances", "listInstances", "status",
		"The running instances, and how each sees channels and lanes", view, 0,
	}, a.instances)
	serve(a, operation{
		get, "/channels", "listChannels", "channels", "List the channels", view, 0,
	}, a.channels)
	serve(a, operation{
		put, "/channels/{channel}/state", "setChannelState", "channels",
		"Drain, enable or disable a channel", operate, 0,
	}, a.setState)
	serve(a, operation{
		post, "/channels/{channel}/test", "testChannel", "channels",
		"Send one message over one channel, to see whether it works", operate, 0,
	}, a.test)
}

func (a *API) routingRoutes() {
	serve(a, operation{
		get, "/routing", "getRouting", "routing", "The routing document in force", view, 0,
	}, a.routing)
	serve(a, operation{
		put, "/routing", "applyRouting", "routing", "Apply a document as a new version", operate,
		maxDocument,
	}, a.apply, withDocument)
	serve(a, operation{
		post, "/routing/validate", "validateRouting", "routing", "Check a document", view,
		maxDocument,
	}, a.validate, withDocument)
	serve(a, operation{
		post, "/routing/preview", "previewRouting", "routing",
		"What a document would change, and the intervals of its routes", view, maxDocument,
	}, a.preview, withDocument)
	serve(a, operation{
		post, "/routing/rollback", "rollbackRouting", "routing",
		"Apply the document of an old version as a new one", operate, 0,
	}, a.rollback)
	serve(a, operation{
		get, "/routing/versions", "listRoutingVersions", "routing",
		"The versions, newest first: who, when, why and what changed", view, 0,
	}, a.versions)
	serve(a, operation{
		get, "/routing/versions/{version}", "getRoutingVersion", "routing", "One version", view, 0,
	}, a.version)
	serve(a, operation{
		get, "/routing/versions/{from}/diff/{to}", "compareRoutingVersions", "routing",
		"What differs between two versions, in meaning and as text", view, 0,
	}, a.compare)
}

func (a *API) weightRoutes() {
	serve(a, operation{
		get, "/weights", "listWeights", "weights", "The weights in force of all routes", view, 0,
	}, a.weights)
	serve(a, operation{
		put, "/routes/{route}/weights", "setWeights", "weights",
		"Give channels of a route other weights", operate, 0,
	}, a.setWeights)
	serve(a, operation{
		get, "/ramps", "listRamps", "weights", "The ramps, newest first", view, 0,
	}, a.ramps)
	serve(a, operation{
		post, "/routes/{route}/ramp", "startRamp", "weights",
		"Move the weights of a route in steps", operate, 0,
	}, a.startRamp)
	serve(a, operation{
		put, "/routes/{route}/ramp", "steerRamp", "weights",
		"Hold, resume or cancel the ramp of a route", operate, 0,
	}, a.steerRamp)
}

func (a *API) limitRoutes() {
	serve(a, operation{
		get, "/limits", "listLimits", "limits", "What the limits leave now", view, 0,
	}, a.limits)
	serve(a, operation{
		put, "/limits", "setLimit", "limits", "Change, add or remove one limit", operate, 0,
	}, a.setLimit)
	serve(a, operation{
		post, "/limits/restart", "restartLimit", "limits",
		"Start the window of now for a limit whose window begins in the future", operate, 0,
	}, a.restartLimit)
	serve(a, operation{
		get, "/budgets", "listBudgets", "limits", "What the prepaid budgets leave now", view, 0,
	}, a.budgets)
	serve(a, operation{
		post, "/budgets/top-ups", "topUpBudget", "limits", "Add to a prepaid budget", operate, 0,
	}, a.topUp)
	serve(a, operation{
		get, "/budgets/top-ups", "listTopUps", "limits", "The top-ups, newest first", view, 0,
	}, a.topUps)
	serve(a, operation{
		post, "/pause", "pause", "pauses", "Stop lanes, routes, tenants or everything", operate, 0,
	}, a.pause)
	serve(a, operation{
		post, "/resume", "resume", "pauses", "Send again what was paused", operate, 0,
	}, a.resume)
}

func (a *API) messageRoutes() {
	if a.cfg.Intake != nil {
		serve(a, operation{
			post, "/messages", "sendMessages", "messages",
			"Accept messages and write them to the topic of their lane", access.Send, maxDocument,
		}, a.send, withAccepted)
	}
	serve(a, operation{
		get, "/messages/{id}", "getMessage", "messages",
		"Why a message went where it went: attempts, waits, candidates and a paragraph", view, 0,
	}, a.message)
	serve(a, operation{
		post, "/messages/lookup", "findMessages", "messages",
		"The messages of the last days to a number", view, 0,
	}, a.lookup)
	serve(a, operation{
		post, "/messages/{id}/cancel", "cancelMessage", "messages",
		"End a message that has not left", operate, 0,
	}, a.cancel)
	serve(a, operation{
		post, "/messages/cancel", "cancelMessages", "messages",
		"End the messages that have not left and that a filter finds", operate, 0,
	}, a.cancelMany)
}

func (a *API) optOutRoutes() {
	serve(a, operation{
		get, "/opt-outs", "countOptOuts", "opt-outs",
		"Count the opt-outs of each tenant by where they came from", view, 0,
	}, a.optOuts)
	serve(a, operation{
		post, "/opt-outs/lookup", "findOptOuts", "opt-outs",
		"Whether a number is on a tenant's opt-out list, since when and why", view, 0,
	}, a.findOptOuts)
	serve(a, operation{
		post, "/opt-outs", "addOptOuts", "opt-outs", "Put numbers on a tenant's opt-out list",
		operate, 0,
	}, a.addOptOuts)
	serve(a, operation{
		post, "/opt-outs/remove", "removeOptOuts", "opt-outs",
		"Take numbers off a tenant's opt-out list", operate, 0,
	}, a.removeOptOuts)
}

// problemRoutes registers the operations on ambiguous submissions and dead records.
func (a *API) problemRoutes() {
	serve(a, operation{
		get, "/ambiguous", "listAmbiguous", "ambiguous",
		"Submissions that nobody answered, oldest first", view, 0,
	}, a.ambiguous)
	serve(a, operation{
		post, "/ambiguous/{id}/settle", "settleAmbiguous", "ambiguous",
		"Record what became of an ambiguous message", operate, 0,
	}, a.settle)
	serve(a, operation{
		post, "/ambiguous/settle", "settleAllAmbiguous", "ambiguous",
		"Record what became of the ambiguous messages that a filter finds", operate, 0,
	}, a.settleMany)
	serve(a, operation{
		get, "/dead", "listDead", "dead", "Records that could not be used, newest first", view, 0,
	}, a.dead)
	serve(a, operation{
		get, "/dead/records/{record}", "getDead", "dead",
		"One record that could not be used: what is wrong, and what to do", view, 0,
	}, a.showDead)
	serve(a, operation{
		post, "/dead/replay", "replayDead", "dead",
		"Publish dead records again: named or by a filter as they are, or one corrected", operate, 0,
	}, a.replay)
}

func (a *API) reportRoutes() {
	serve(a, operation{
		get, "/reports/daily", "dailyReport", "reports", "Report of a day", access.Report, 0,
	}, a.daily)
	serve(a, operation{
		get, "/reports/range", "rangeReport", "reports",
		"Report of each day, week or month of a range", access.Report, 0,
	}, a.rangeReport)
	serve(a, operation{
		get, "/reports/contracts", "contractReport", "reports",
		"What was bought of each channel's commitment and cap for the month", access.Report, 0,
	}, a.contracts)
	serve(a, operation{
		get, "/audit/actions", "listActions", "audit", "Who did what, when and why, newest first",
		access.Audit, 0,
	}, a.actions)
	serve(a, operation{
		get, "/audit/routing", "listChanges", "audit",
		"Who changed the routing, when, why and what", access.Audit, 0,
	}, a.versions)
}
