package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// passedOverWords say why a channel, or several, were passed over, in brackets. The keys are the
// reasons that package dispatch records, and the words of provider.Channel.Ready.
var passedOverWords = map[string]struct{ one, many string }{
	"no_slot":      {"its sending limit for the running window was used up", "their sending limits for the running window were used up"},
	"reserved":     {"what was left of its limit was kept for other lanes", "what was left of their limits was kept for other lanes"},
	"no_share":     {"its admission policy left no slots to the process that looked", "their admission policies left no slots to the process that looked"},
	"tenant_limit": {"the tenant's limit was used up", "the tenant's limits were used up"},
	"prefix_limit": {"the limit for numbers with this beginning was used up", "the limits for numbers with this beginning were used up"},
	"no_budget":    {"the budget for the running window was spent", "the budgets for the running window were spent"},
	// What follows a space says which limit never has room.
	"closed no_slot":         {"it is closed: its limit is 0", "they are closed: their limits are 0"},
	"closed tenant_limit":    {"it is closed to the tenant: the limit is 0", "they are closed to the tenant: the limit is 0"},
	"closed prefix_limit":    {"it is closed to numbers with this beginning: the limit is 0", "they are closed to numbers with this beginning: the limit is 0"},
	"closed no_budget":       {"it is closed: the budget is 0", "they are closed: the budget is 0"},
	"too_small no_slot":      {"the message takes more than its limit gives", "the message takes more than their limits give"},
	"too_small tenant_limit": {"the message takes more than the tenant's limit gives", "the message takes more than the tenant's limit gives"},
	"too_small prefix_limit": {"the message takes more than the limit for numbers with this beginning gives", "the message takes more than the limit for numbers with this beginning gives"},
	"too_small no_budget":    {"the message costs more than the budget of a window", "the message costs more than the budget of a window"},
	"busy":                   {"it had a longer queue in this process than could be sent in time", "they had longer queues in this process than could be sent in time"},
	"bulkhead":               {"it answered late and had its share of what the process may have under way", "they answered late and had their shares of what the process may have under way"},
	"in_flight":              {"the process had as many messages under way on it as it may have", "the process had as many messages under way on them as it may have"},
	"no_active":              {"it had as many messages under way as it may have", "they had as many messages under way as they may have"},
	"draining":               {"it is being drained", "they are being drained"},
	"disabled":               {"it is switched off", "they are switched off"},
	"already_tried":          {"it had not taken this message before", "they had not taken this message before"},
	"selector":               {"it does not meet the selectors of the message", "they do not meet the selectors of the message"},
	"weight_zero":            {"its weight is 0, so no draw picks it", "their weight is 0, so no draw picks them"},
	"too_long":               {"the text has more segments on it than the route allows", "the text has more segments on them than the route allows"},
	"sender":                 {"it may not carry the sender of the message", "they may not carry the sender of the message"},
	"price_cap":              {"it costs more than the message may cost", "they cost more than the message may cost"},
	"throttled":              {"it had asked to slow down", "they had asked to slow down"},
	"pinned_elsewhere":       {"another channel had accepted a part of the message", "another channel had accepted a part of the message"},
	"removed":                {"it is not part of the routing any more", "they are not part of the routing any more"},
	"cut_otherwise":          {"it would cut the text otherwise now than into the parts that it had accepted", "they would cut the text otherwise now than into the parts that they had accepted"},
	"breaker_open":           {"it had failed so often that it was left alone for a while", "they had failed so often that they were left alone for a while"},
	"not_ready":              {"it is not ready", "they are not ready"},
	"connecting":             {"it had no connection", "they had no connection"},
	"unbound":                {"it had no connection", "they had no connection"},
	"bind_refused":           {"its provider refused the login", "their providers refused the login"},
	"misconfigured":          {"its settings could not be used on the instance that looked", "their settings could not be used on the instance that looked"},
	"closed":                 {"its connection had been closed", "their connections had been closed"},
}

// limitLackWords say what the matter was with a limit that was waited for, to stand in brackets.
var limitLackWords = map[string]string{
	"no_slot":      noRoom,
	"tenant_limit": noRoom,
	"prefix_limit": noRoom,
	"no_budget":    noRoom,
	"reserved":     "what was left of it was kept for other lanes",
	"no_share":     "the channel's policy left no slots to the process that looked",
}

const noRoom = "it had no room"

// neverWords say the same of one that never had any.
var neverWords = map[string]string{
	neverOpen:  "it was closed: 0 at the last look",
	neverSmall: "the message takes more than it gave at the last look",
}

// deadWords say why a record could not be used, to follow "because".
var deadWords = map[string]string{
	"too_large":         "the record is larger than 64 KiB",
	"bad_json":          "the record is not a JSON object in UTF-8",
	"unknown_field":     "it has a field that an envelope does not have",
	"duplicate_field":   "one of its fields stands there twice",
	"bad_id":            "its id is missing or not 1 to 64 printable characters",
	"bad_number":        "its recipient is not a number in E.164 form",
	"no_text":           "it has no text",
	"bad_field":         "one of its fields has the wrong type or form",
	"expired":           "its deadline had passed when it was read",
	"too_many_segments": "its text has more segments than the route allows",
	"no_route":          "no route of the routing document takes it",
	"bad_sender":        "its sender is none that a network can show",
	"conflict":          "its id was taken by another message",
	"unstorable":        "the database refused to store it",
}

// rejectedWords say why the dispatcher itself rejects a message, to follow "because".
var rejectedWords = map[string]string{
	"blocked_number": "nothing is sent to such numbers",
}

// waitWords say why a message waits, to follow "because". Other reasons are those of its channels.
var waitWords = map[string]string{
	"no_route":  "its route is not part of the routing any more",
	"disabled":  "no channel of its route is switched on",
	"selector":  "no channel meets its selectors until the first of them expires",
	"all_tried": "every channel of its route has refused it, and a new round begins after a pause",
}

// troubleWords say why a route's own scoring did not count, to follow "because".
var troubleWords = map[string]string{
	"expression_failed":    "the expression of the route gave no number for one of the channels",
	"function_timeout":     "the scoring function of the route did not answer in time",
	"function_status":      "the scoring function of the route answered with an error",
	"function_invalid":     "the answer of the route's scoring function could not be read",
	"function_too_few":     "the scoring function of the route did not score every channel",
	"function_not_finite":  "the scoring function of the route gave a score that is no number",
	"function_too_large":   "the answer of the route's scoring function was too long",
	"function_unreachable": "the scoring function of the route could not be reached",
}

// modeWords say how a route that does not draw chooses among its channels, to follow its name.
var modeWords = map[string]string{
	"round_robin":  "which gives messages to %s in turn",
	"longest_idle": "which gives messages to the least loaded of %s",
	"best_worker":  "which gives messages to the best match among %s",
}

// because finds the words that follow "because".
func because(words map[string]string, reason string) string {
	if s, ok := words[reason]; ok {
		return s
	}
	return "of " + strings.ReplaceAll(reason, "_", " ")
}

// whyNot finds the words for why so many channels were passed over.
func whyNot(reason string, channels int) string {
	words, ok := passedOverWords[reason]
	switch {
	case !ok:
		return strings.ReplaceAll(reason, "_", " ")
	case channels > 1:
		return words.many
	}
	return words.one
}

// enumerate joins words as in "a, b and c".
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// mostNamed is how many names a sentence lists.
const mostNamed = 8

// some joins words as enumerate does, but counts those of a long list that come last.
func some(words []string) string {
	if len(words) <= mostNamed {
		return enumerate(words)
	}
	return strings.Join(words[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(words)-mostNamed)
}

// percent writes a share with at most two decimals.
func percent(share float64) string {
	s := strconv.FormatFloat(share*100, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " %"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// span writes how long something took: "20 ms", "16.2 s", "5 min", "2 h 18 min 7 s".
func span(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	if d.Round(time.Second/10) < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	var parts []string
	d = d.Round(time.Second)
	for _, unit := range spanUnits {
		if n := d / unit.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
		}
		d %= unit.length
	}
	return strings.Join(parts, " ")
}

var spanUnits = []struct {
	name   string
	length time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}

// code writes a provider's word in brackets, if there is one.
func code(word string) string {
	if word == "" {
		return ""
	}
	return " (code " + word + ")"
}
