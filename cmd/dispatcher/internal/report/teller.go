package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// teller writes the paragraph of a record, sentence by sentence.
type teller struct {
	record *ledger.Record
	story  *Story
	doc    *config.Routing // nil when the message was planned under none
	zone   *time.Location
	now    time.Time // zero when it is not known
	// waits are all of the message, seen is what the last of them was decided on, and limit the one that it waits for
	// now; nil when it waits for none.
	waits []ledger.Wait
	seen  seen
	limit *limited
	day   string // date that was written last
	// expiredTold is how many expired selectors have been told of.
	expiredTold int
	out         []string
}

func (t *teller) say(format string, args ...any) {
	t.out = append(t.out, fmt.Sprintf(format, args...))
}

// at writes a time of day in the business time zone, with its date where that is new.
func (t *teller) at(when time.Time) string {
	if when.In(t.zone).Format(dateWords) == t.day {
		return "at " + t.when(when)
	}
	return "on " + t.when(when)
}

// dateWords is the form of a date.
const dateWords = "2 January 2006"

// when writes what at does, to follow other words than "at" and "on".
func (t *teller) when(when time.Time) string {
	when = when.In(t.zone)
	clock, date := when.Format("15:04:05 MST"), when.Format(dateWords)
	if date == t.day {
		return clock
	}
	t.day = date
	return date + " at " + clock
}

func (t *teller) paragraph() string {
	t.intro()
	if t.record.Message.State == ledger.Dead {
		t.say("It could not be used, because %s%s. Nothing was sent.", because(deadWords, t.record.Message.Reason), t.detail())
		return strings.Join(t.out, " ")
	}
	t.country()
	t.choice()
	waits, before := waitedFor(t.waits, t.seen.candidates), t.waitedBefore()
	for i := range t.story.Attempts {
		if i == before {
			t.waited(i, waits)
		}
		t.attempt(i)
		t.doubt(t.story.Attempts[i].Attempt)
	}
	if waits != "" && before < 0 {
		t.say("%s %s.", t.waitsSoFar(), t.shortened(waits))
	}
	t.end()
	return strings.Join(t.out, " ")
}

// detail says more about why a record could not be used.
func (t *teller) detail() string {
	if d := t.record.Message.Detail; d != "" && d != deadWords[t.record.Message.Reason] {
		return ": " + d
	}
	return ""
}

func (t *teller) intro() {
	m := &t.record.Message
	name := "Message " + m.ID
	if len(m.ID) > 64 {
		name = fmt.Sprintf("The record at %s/%d/%d", m.Origin.Topic, m.Origin.Partition, m.Origin.Offset)
	}
	size, tenant := "", ""
	if m.Plan.Segments > 0 {
		size = fmt.Sprintf(" It is %s in %s.", plural(m.Plan.Segments, "segment"), m.Plan.Alphabet)
	}
	if m.Tenant != "" {
		tenant = " for " + m.Tenant
	}
	t.say("%s was received %s in lane %s%s.%s", name, t.at(m.ReceivedAt), m.Lane, tenant, size)
}

// choice explains the draw, or how the route chooses without one.
func (t *teller) choice() {
	p := &t.record.Message.Plan
	if p.Route == "" {
		return
	}
	t.say("Route %s%s took it, under routing version %d.", p.Route, t.manner(), p.Version)
	if p.Size > 0 {
		t.lowered("was")
		t.drawn("was")
	}
}

// manner says how the route chooses.
func (t *teller) manner() string {
	route := routeNamed(t.doc, t.record.Message.Plan.Route)
	if route == nil {
		return ""
	}
	if words, ok := modeWords[route.Mode]; ok {
		return ", " + fmt.Sprintf(words, some(route.Channels)) + ","
	}
	shares := agreedShares(route)
	words := make([]string, len(route.Weights))
	for i, w := range route.Weights {
		words[i] = percent(shares[w.Channel]) + " for " + w.Channel
	}
	return " (" + some(words) + ")"
}

// lowered tells of weights that health weighting had put in place of the document's.
func (t *teller) lowered(was string) {
	route := routeNamed(t.doc, t.record.Message.Plan.Route)
	if route == nil {
		return
	}
	var words []string
	for _, w := range lowered(route) {
		words = append(words, fmt.Sprintf("%s %s %s instead of %s", w.Channel, was, w.Weight, w.Configured))
	}
	if len(words) > 0 {
		t.say("Because of failures the effective weight of %s.", some(words))
	}
}

// drawn tells the draw and its interval, or that there was nothing to choose from.
func (t *teller) drawn(was string) {
	p := &t.record.Message.Plan
	low, high, known := t.interval()
	route := routeNamed(t.doc, p.Route)
	switch {
	case known && low == 0 && high+1 == uint64(p.Size) && len(route.Channels) == 1:
		t.say("Its first choice %s %s, the only channel.", was, p.FirstChoice)
	case known && low == 0 && high+1 == uint64(p.Size):
		t.say("Its first choice %s %s, the only channel that draws can pick.", was, p.FirstChoice)
	case known:
		t.say("Its draw %s %d of 0 to %d, in the interval %d to %d of %s, so its first choice %s %s.",
			was, p.Draw, p.Size-1, low, high, p.FirstChoice, was, p.FirstChoice)
	default:
		t.say("Its draw %s %d of 0 to %d, so its first choice %s %s.", was, p.Draw, p.Size-1, was, p.FirstChoice)
	}
}

// interval is the range of draws that the first choice has.
func (t *teller) interval() (low, high uint64, known bool) {
	p := &t.record.Message.Plan
	route := routeNamed(t.doc, p.Route)
	if route == nil || route.Mode != modeWeighted {
		return 0, 0, false
	}
	table, err := selector.NewTable(route.Entries())
	if err != nil {
		return 0, 0, false // a document with such weights was never applied
	}
	for _, iv := range table.Intervals() {
		if iv.Name == p.FirstChoice && !iv.Empty {
			return iv.Low, iv.High, true
		}
	}
	return 0, 0, false
}

// noticeableWait tells a message that waited from one that was sent in the transaction
// that stored it.
const noticeableWait = 100 * time.Millisecond

// waitedBefore is the attempt that came out of the wait that the record kept; -1 when it kept none.
func (t *teller) waitedBefore() int {
	r := t.record
	switch {
	case (r.Seen == nil && len(r.Message.Waits) == 0) || len(r.Attempts) == 0 || r.Message.State == ledger.Waiting:
		return -1
	case r.Message.State == ledger.Failed:
		return -1 // it waited until it was given up
	case r.Attempts[0].ClaimedAt.Sub(r.Message.ReceivedAt) >= noticeableWait:
		return 0
	}
	return len(r.Attempts) - 1
}

// waited tells of the wait before an attempt. waits has all of it; it is empty in records of earlier releases.
func (t *teller) waited(attempt int, waits string) {
	if waits != "" {
		t.say("It had to wait for %s.", waits)
		return
	}
	since := t.record.Message.ReceivedAt
	if attempt > 0 {
		since = t.record.Attempts[attempt-1].SettledAt
	}
	t.say("It had to wait for %s%s.", span(t.record.Attempts[attempt].ClaimedAt.Sub(since)), t.seenWhy())
}

// waitsSoFar begins the sentence about waits that no attempt came out of.
func (t *teller) waitsSoFar() string {
	if t.record.Message.State.Final() {
		return "It had waited for"
	}
	return "So far it has waited for"
}

// shortened leaves out for what a message waits when it has waited for nothing else: what follows says that.
func (t *teller) shortened(waits string) string {
	if t.limit != nil && len(t.waits) == 1 && t.waits[0].On == t.limit.on {
		return span(t.waits[0].For)
	}
	return waits
}

// seenWhy says why no channel could take the message when it was last made to wait.
func (t *teller) seenWhy() string {
	if !t.seen.known {
		return ""
	}
	return ", because " + reasons(passedOver(t.seen.candidates))
}

// reasons lists channels with why each was passed over; those with the same reason together.
func reasons(passed []Candidate) string {
	var order []string
	channels := map[string][]string{}
	for i := range passed {
		c := &passed[i]
		reason := c.Reason
		if c.Never != "" {
			reason = c.Never + " " + c.Reason
		}
		if channels[reason] == nil {
			order = append(order, reason)
		}
		channels[reason] = append(channels[reason], c.Channel)
	}
	words := make([]string, len(order))
	for i, reason := range order {
		words[i] = some(channels[reason]) + " could not take it (" + whyNot(reason, len(channels[reason])) + ")"
	}
	return some(words)
}

// end says what state the message is in, where the attempts have not said it yet.
func (t *teller) end() {
	m := &t.record.Message
	switch m.State {
	case ledger.Scheduled:
		t.say("It is to be sent %s; nothing has been tried yet.", t.at(m.NextAt))
	case ledger.Waiting:
		t.waiting()
	case ledger.Retry:
		t.say("It is tried again %s.", t.at(m.NextAt))
	case ledger.Failed:
		t.failed()
	case ledger.Unknown:
		if slices.ContainsFunc(t.story.Doubts, func(d Doubt) bool { return d.Verdict == "" }) {
			t.say("Until then it is not sent again, so as not to send it twice.")
			return
		}
		if t.resentInVain() {
			t.say("Nobody took it when it was to be sent once more, but the attempt that nobody answered may have been taken.")
			return
		}
		t.say("So as not to send it twice, it was not sent again.")
	case ledger.Delivered, ledger.Undelivered, ledger.NoReceipt:
		t.receipt()
	case ledger.Rejected:
		t.rejected()
	case ledger.Sending, ledger.Accepted, ledger.Dead:
	}
	if m.PossibleDuplicate {
		t.say("It may have arrived twice.")
	}
}

// resentInVain reports whether the message was to be sent once more, and it is certain that nobody took it then.
func (t *teller) resentInVain() bool {
	resent := slices.ContainsFunc(t.story.Doubts, func(d Doubt) bool { return d.Verdict == string(ledger.Resent) })
	return resent && !slices.ContainsFunc(t.record.Attempts, func(a ledger.AttemptRecord) bool {
		return a.Reason == ledger.ByResend && a.Outcome == "unknown"
	})
}

// waitWhy says why the message waits now.
func (t *teller) waitWhy() string {
	if words, ok := waitWords[t.record.Message.Reason]; ok {
		return ", because " + words
	}
	if t.held() {
		return " for its first choice, as route " + t.story.Route + " lets messages do" + t.seenWhy()
	}
	return t.seenWhy()
}

// rejected says why the dispatcher itself rejected the message; a provider's words stand with his attempt.
func (t *teller) rejected() {
	m := &t.record.Message
	if words, ok := rejectedWords[m.Reason]; ok {
		t.say("It was rejected, because %s.", words)
		return
	}
	if m.Reason != "opted_out" {
		return
	}
	whose := "messages without a tenant"
	if m.Tenant != "" {
		whose = "messages of " + m.Tenant
	}
	ending := "nothing was sent"
	if len(t.record.Attempts) > 0 {
		ending = "it was not tried again"
	}
	t.say("The recipient had opted out of %s, so %s.", whose, ending)
}

func (t *teller) failed() {
	m := &t.record.Message
	if m.Reason == "expired" {
		t.say("It was given up, because its deadline passed %s.", t.at(m.ExpiresAt))
		return
	}
	if m.Reason == "cut_otherwise" {
		t.say("The rest of it was given up when its deadline passed %s: the channel that had accepted some of its parts cut the text otherwise by then.", t.at(m.ExpiresAt))
		return
	}
	t.say("It was given up%s.", t.seenWhy())
}
