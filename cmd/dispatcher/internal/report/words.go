package report

import (
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// exclusionWords are words for exclusion reasons: those that package decide records, and those of
// provider.Channel.Ready. They follow one or several channels in brackets, or precede a number of
// messages, so they have no subject.
var exclusionWords = map[string]string{
	"no_slot":      "sending limit of the running window used up",
	"reserved":     "rest of the limit kept for other lanes",
	"no_share":     "no slots left to the process by the admission policy",
	"tenant_limit": "limit of the tenant used up",
	"prefix_limit": "limit for numbers with this prefix used up",
	"no_budget":    "budget of the running window spent",
	"busy":         "queue in the process longer than could be sent in time",
	"bulkhead":     "no answers or few senders, and its share of the messages in flight used up",
	"in_flight":    "as many messages in flight as the process may have on it",
	"no_active":    "as many messages in flight as it may have",
	"draining":     "being drained",
	"disabled":     "switched off",

	"already_tried":    "tried before and did not take it",
	"selector":         "selectors of the message not met",
	"weight_zero":      "weight 0, so no draw picks it",
	"too_long":         "more segments than the route allows",
	"sender":           "sender of the message not allowed",
	"price_cap":        "price above what the message may cost",
	"throttled":        "provider had asked to slow down",
	"pinned_elsewhere": "another channel had accepted a part of the message",
	"removed":          "no longer part of the routing",
	"cut_otherwise":    "text now split into other parts than those that were accepted",
	"breaker_open":     "breaker open after repeated failures",
	"not_ready":        "not ready",
	"connecting":       "no connection",
	"unbound":          "no connection",
	"bind_refused":     "login refused by the provider",
	"misconfigured":    "settings not usable on the instance that looked",
	"closed":           "connection closed",

	causeRefused:   "submit refused",
	causeUnknown:   "submit without an answer, and the message sent once more",
	causeNoReceipt: "no receipt in time, and the message sent through the next channel as well",

	// For a limit that can never admit the message: the word of Never, a space and the reason.
	"closed no_slot":         "closed: its limit is 0",
	"closed tenant_limit":    "closed to the tenant: the limit is 0",
	"closed prefix_limit":    "closed to numbers with this prefix: the limit is 0",
	"closed no_budget":       "closed: the budget is 0",
	"too_small no_slot":      "the message takes more than its limit gives",
	"too_small tenant_limit": "the message takes more than the limit of the tenant gives",
	"too_small prefix_limit": "the message takes more than the limit for this prefix gives",
	"too_small no_budget":    "the message costs more than the budget of a window",
}

// waitWords say why a message waits, after "because", if its channels are not the reason.
var waitWords = map[string]string{
	"paused":      "its lane, route, tenant, prefix or everything is paused",
	"quiet_hours": "its route sends nothing in its quiet hours",
	"no_route":    "its route is no longer part of the routing",
	"disabled":    "no channel of its route is switched on",
	"selector":    "no channel meets its selectors until the first of them expires",
	"all_tried": "every channel of its route has refused it, and they are tried again after a " +
		"pause",
}

// deadWords say why a record could not be used, after "because".
var deadWords = map[string]string{
	"too_large":         "the record is larger than 64 KiB",
	"bad_json":          "the record is not a JSON object in UTF-8",
	"unknown_field":     "it has a field that an envelope does not have",
	"duplicate_field":   "it has one field twice",
	"bad_id":            "its id is missing or not 1 to 64 printable characters",
	"bad_number":        "its recipient is not a number in E.164 form",
	"no_text":           "it has no text",
	"bad_field":         "one of its fields has the wrong type or form",
	"expired":           "its deadline had passed when it was read",
	"too_many_segments": "its text has more segments than the route allows",
	"no_route":          "no route of the routing document takes it",
	"bad_sender":        "no network can show its sender",
	"conflict":          "another message has its id",
	"unstorable":        "the database refused to store it",
}

// rejectedWords say why the dispatcher itself rejects a message, after "because".
var rejectedWords = map[string]string{
	"blocked_number":      "nothing is sent to such numbers",
	"country_not_allowed": "its country is none of those that are allowed",
}

// scoringWords say why a route's own scoring was not used, after "because".
var scoringWords = map[string]string{
	"expression_failed":    "the expression of the route gave no number for one of the channels",
	"function_timeout":     "the scoring function of the route did not answer in time",
	"function_status":      "the scoring function of the route answered with an error",
	"function_invalid":     "the answer of the route's scoring function could not be read",
	"function_too_few":     "the scoring function of the route did not score every channel",
	"function_not_finite":  "the scoring function of the route gave a score that is not a number",
	"function_too_large":   "the answer of the route's scoring function was too long",
	"function_unreachable": "the scoring function of the route could not be reached",
}

// clarifyWords say how the outcome of an attempt without an answer is searched.
var clarifyWords = map[string]string{
	"same_key": "it is submitted again under the same key, which the provider takes once",
	"lookup":   "the provider is asked for it",
	"receipt":  "a receipt is awaited",
}

// resolutionWords say what that search found.
var resolutionWords = map[string]string{
	"taken":     "that it had been taken",
	"not_taken": "that it had not been taken",
	"resent":    "nothing, so the lane had it sent once more",
	"final": "nothing: nobody knows whether it was taken, and it counts as possibly " +
		"billable",
}

// answeredWords say who knew the outcome of an attempt without an answer, by the attempt's code.
var answeredWords = map[string]string{
	decide.CodeOperator: "an operator settled",
	decide.CodeLookup:   "the provider was asked and said",
}

// receiptWords say why a message was not delivered.
var receiptWords = map[string]string{
	string(provider.Expired):       "its validity ended before the handset could be reached",
	string(provider.UnknownNumber): "nobody has this number",
	string(provider.Absent):        "the handset was off or out of reach",
	string(provider.NotMobile):     "the number takes no SMS",
	string(provider.Blocked):       "the recipient or the operator bars messages",
	string(provider.Spam):          "a filter took it for spam",
	string(provider.OptedOut):      "the recipient told the provider to stop",
	string(provider.BadSender):     "the sender id is not allowed there",
	string(provider.NoCredit):      "the account has no money or is suspended",
	string(provider.Deleted):       "it was cancelled or deleted",
	string(provider.NetworkError):  "there was no route, or a fault at the operator",
}

// endWords say how messages that no channel carried ended, after their number.
var endWords = map[string]string{
	causeRejected:  "rejected",
	causeOptedOut:  "for numbers that had opted out",
	causeFailed:    "failed without being taken",
	causeExpired:   "expired without being taken",
	causeCancelled: "cancelled",
	causeNoChannel: "that no channel may take",
	causeNoAnswer:  "without an answer",
	causeOpen:      "not finished",
}

// endVerbs say the same after "messages".
var endVerbs = map[string]string{
	causeRejected:  "were rejected",
	causeOptedOut:  "were for numbers that had opted out",
	causeFailed:    "failed without being taken",
	causeExpired:   "expired without being taken",
	causeCancelled: "were cancelled",
	causeNoChannel: "may be taken by no channel",
	causeNoAnswer:  "got no answer",
	causeOpen:      "are not finished",
}

// WaitWords says why messages wait, for a reason of the closed list.
func WaitWords(reason string) string {
	if words, ok := waitWords[reason]; ok {
		return words
	}
	return exclusion(reason)
}

// exclusion finds the words for an exclusion reason.
func exclusion(reason string) string {
	if words, ok := exclusionWords[reason]; ok {
		return words
	}
	return strings.ReplaceAll(reason, "_", " ")
}

// because finds the words that follow "because".
func because(words map[string]string, reason string) string {
	if s, ok := words[reason]; ok {
		return s
	}
	return "of " + strings.ReplaceAll(reason, "_", " ")
}
