package api

import (
	"context"
	"net/http"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// routes registers all operations. This is the one list.
func (a *API) routes() {
	const get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
	view, operate := access.View, access.Operate

	serve(a, operation{get, "/whoami", "whoami", "access", "Who you are", anybody, 0}, a.whoami)

	serve(a, operation{get, "/status", "status", "status", "How the dispatcher does now", view, 0},
		a.status)
	a.live(operation{
		get, "/live", "live", "status", "The status as a stream of events, when it changes", view, 0,
	})
	serve(a, operation{
		get, "/channels", "listChannels", "channels", "List the channels", view, 0,
	}, a.channels)
	serve(a, operation{
		put, "/channels/{channel}/state", "setChannelState", "channels",
		"Drain, enable or disable a channel", operate, 0,
	}, a.setState)

	serve(a, operation{
		get, "/routing", "getRouting", "routing", "The routing document in force", view, 0,
	}, a.routing)
	serve(a, operation{
		put, "/routing", "applyRouting", "routing", "Apply a document as a new version", operate,
		maxDocument,
	}, a.apply)
	serve(a, operation{
		post, "/routing/validate", "validateRouting", "routing", "Check a document", view,
		maxDocument,
	}, a.validate)
	serve(a, operation{
		post, "/routing/preview", "previewRouting", "routing",
		"What a document would change, and the intervals of its routes", view, maxDocument,
	}, a.preview)
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

	serve(a, operation{
		get, "/limits", "listLimits", "limits", "What the limits leave now", view, 0,
	}, a.limits)
	serve(a, operation{
		put, "/limits", "setLimit", "limits", "Change, add or remove one limit", operate, 0,
	}, a.setLimit)
	serve(a, operation{
		post, "/pause", "pause", "pauses", "Stop lanes, routes, tenants or everything", operate, 0,
	}, a.pause)
	serve(a, operation{
		post, "/resume", "resume", "pauses", "Send again what was paused", operate, 0,
	}, a.resume)

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
		get, "/ambiguous", "listAmbiguous", "ambiguous",
		"Submissions that nobody answered, oldest first", view, 0,
	}, a.ambiguous)
	serve(a, operation{
		post, "/ambiguous/{id}/settle", "settleAmbiguous", "ambiguous",
		"Record what became of an ambiguous message", operate, 0,
	}, a.settle)
	serve(a, operation{
		get, "/dead", "listDead", "dead", "Records that could not be used, newest first", view, 0,
	}, a.dead)

	serve(a, operation{
		get, "/reports/daily", "dailyReport", "reports", "Report of a day", access.Report, 0,
	}, a.daily)
	serve(a, operation{
		get, "/reports/range", "rangeReport", "reports",
		"Report of each day, week or month of a range", access.Report, 0,
	}, a.rangeReport)
	serve(a, operation{
		get, "/audit/actions", "listActions", "audit", "What operators did by hand to messages",
		access.Audit, 0,
	}, a.actions)
	serve(a, operation{
		get, "/audit/routing", "listChanges", "audit",
		"Who changed the routing, when, why and what", access.Audit, 0,
	}, a.versions)
}

// maxDocument is more than a routing document may have, as JSON.
const maxDocument = 4 << 20

type identity struct {
	Name string `json:"name"`
	Role string `json:"role" doc:"viewer, operator, finance or admin; several are joined by +"`
}

func (a *API) whoami(ctx context.Context, _ *struct{}) (*reply[identity], error) {
	who := caller(ctx)
	return &reply[identity]{identity{who.Name, who.Role.String()}}, nil
}

func (a *API) status(ctx context.Context, _ *struct{}) (*reply[*status.Now], error) {
	now, err := a.now(ctx)
	return &reply[*status.Now]{now}, err
}

func (a *API) now(ctx context.Context) (*status.Now, error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	return status.Read(ctx, a.cfg.Ledger, a.cfg.DeadAfter, v.Version, doc)
}

type channelList struct {
	Version  int64           `json:"version"`
	Channels []status.Detail `json:"channels" nullable:"false"`
}

func (a *API) channels(ctx context.Context, _ *struct{}) (*tagged[channelList], error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	channels, err := status.ReadChannels(ctx, a.cfg.Ledger, a.cfg.DeadAfter, v.Version, doc)
	if err != nil {
		return nil, err
	}
	return &tagged[channelList]{etag(v.Version), channelList{v.Version, channels}}, nil
}

func (a *API) limits(ctx context.Context, _ *struct{}) (*tagged[*status.Limits], error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	limits, err := status.ReadLimits(ctx, a.cfg.Ledger, v.Version, doc, nil)
	return &tagged[*status.Limits]{etag(v.Version), limits}, err
}

type weightList struct {
	Version int64                  `json:"version"`
	Routes  []control.RouteWeights `json:"routes" nullable:"false"`
}

func (a *API) weights(ctx context.Context, _ *struct{}) (*tagged[weightList], error) {
	version, routes, err := control.Weights(ctx, a.cfg.Ledger, "")
	if err != nil {
		return nil, err
	}
	return &tagged[weightList]{etag(version), weightList{version, routes}}, nil
}

func (a *API) ramps(ctx context.Context, in *page) (*reply[list[control.Ramp]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	all, err := a.cfg.Ledger.Ramps.List(ctx, true)
	if err != nil {
		return nil, err
	}
	var ramps []control.Ramp
	for i := range all {
		if (before == 0 || all[i].ID < before) && len(ramps) <= in.Limit {
			ramps = append(ramps, control.NewRamp(&all[i]))
		}
	}
	return &reply[list[control.Ramp]]{paged(ramps, in.Limit, func(r *control.Ramp) int64 {
		return r.ID
	})}, nil
}

// deadRecord is a record that could not be used, without its number and its text.
type deadRecord struct {
	Seq        int64     `json:"seq"`
	ID         string    `json:"id" doc:"empty when it has none that can be used"`
	Lane       string    `json:"lane"`
	Tenant     string    `json:"tenant"`
	Reason     string    `json:"reason" doc:"one word"`
	Topic      string    `json:"topic"`
	Partition  int32     `json:"partition"`
	Offset     int64     `json:"offset"`
	ReceivedAt time.Time `json:"received_at"`
}

func (a *API) dead(ctx context.Context, in *page) (*reply[list[deadRecord]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	found, err := a.cfg.Ledger.DeadRecords.List(ctx, &ledger.DeadFilter{Below: before}, in.Limit+1)
	rows := make([]deadRecord, len(found))
	for i := range found {
		d := &found[i]
		rows[i] = deadRecord{
			d.Seq, d.ID, d.Lane, d.Tenant, d.Reason, d.Origin.Topic, d.Origin.Partition,
			d.Origin.Offset, d.ReceivedAt,
		}
	}
	return &reply[list[deadRecord]]{paged(rows, in.Limit, func(r *deadRecord) int64 {
		return r.Seq
	})}, err
}

func (a *API) actions(
	ctx context.Context, in *page,
) (*reply[list[ledger.OperatorAction]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	rows, err := a.cfg.Ledger.Audits.OperatorActions(ctx, before, in.Limit+1)
	return &reply[list[ledger.OperatorAction]]{paged(rows, in.Limit,
		func(r *ledger.OperatorAction) int64 { return r.ID })}, err
}
