package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// Event is one thing that happened to a message.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"event" enum:"received,scheduled,waiting,retry,attempt,answer,ambiguous,settled,receipt,contradicted,cancelled,expired,ended"`
	// Until is when a waiting or scheduled message is due, or when the search for an outcome ends;
	// zero for other events.
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Channel string    `json:"channel,omitempty"`
	// Result is the outcome of an answer, the state of a receipt, the resolution of a search, the
	// reason of an attempt or a wait, or the state in which the message ended.
	Result string `json:"result,omitempty"`
	Author string `json:"author,omitempty"` // of what an operator did
	Login  string `json:"login,omitempty"`  // of the database, beside Author
	Via    string `json:"via,omitempty"`    // how it came in, beside Author
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

// Kinds of events.
const (
	EventReceived     = "received"
	EventScheduled    = "scheduled"
	EventWaiting      = "waiting"
	EventRetry        = "retry"
	EventAttempt      = "attempt"
	EventAnswer       = "answer"
	EventAmbiguous    = "ambiguous"
	EventSettled      = "settled"
	EventReceipt      = "receipt"
	EventContradicted = "contradicted"
	EventCancelled    = "cancelled"
	EventExpired      = "expired"
	EventEnded        = "ended"
)

// timeline lists the events of a record in order of time. Of earlier waits only the duration is
// recorded, so they are not events.
func (e *Explanation) timeline(r *ledger.Record) []Event {
	m := &r.Message
	out := []Event{e.received()}
	out = append(out, scheduled(m)...)
	for i := range e.Attempts {
		out = append(out, e.Attempts[i].events()...)
	}
	for i := range r.Ambiguities {
		out = append(out, ambiguityEvents(&r.Ambiguities[i])...)
	}
	out = append(out, waitEvents(e, m)...)
	out = append(out, ending(r)...)
	slices.SortStableFunc(out, func(a, b Event) int { return a.At.Compare(b.At) })
	return out
}

func (e *Explanation) received() Event {
	title := "Received"
	if e.Lane != "" {
		title += " on lane " + e.Lane
	}
	return Event{At: e.ReceivedAt, Kind: EventReceived, Title: title, Detail: e.planned()}
}

// planned says how the first choice was made.
func (e *Explanation) planned() string {
	switch {
	case e.Route == "":
		return e.Detail
	case e.Draw != nil && e.Size != nil && e.Interval != nil:
		return fmt.Sprintf("Route %s, version %d: draw %d of 0–%d lies in %d–%d, which is %s.",
			e.Route, e.RoutingVersion, *e.Draw, *e.Size-1, e.Interval.Low, e.Interval.High,
			e.FirstChoice)
	case e.FirstChoice != "":
		return fmt.Sprintf("Route %s, version %d: first choice %s.", e.Route, e.RoutingVersion,
			e.FirstChoice)
	}
	return fmt.Sprintf("Route %s, version %d.", e.Route, e.RoutingVersion)
}

// scheduled is the event of a message that came before its send_at. Once it has left or ended, that
// is known from the envelope alone.
func scheduled(m *ledger.Message) []Event {
	at := decide.SendAt(m)
	if m.State == ledger.Scheduled {
		at = m.NextAt
	}
	if !at.After(m.ReceivedAt) {
		return nil
	}
	return []Event{{At: m.ReceivedAt, Kind: EventScheduled, Until: at, Title: "Scheduled"}}
}

func (a *Attempt) events() []Event {
	event := func(at time.Time, kind, result, title string, details ...string) Event {
		details = slices.DeleteFunc(details, func(s string) bool { return s == "" })
		return Event{
			At: at, Kind: kind, Attempt: a.Number, Channel: a.Channel, Result: result, Title: title,
			Detail: strings.Join(details, ", "),
		}
	}
	out := []Event{event(a.ClaimedAt, EventAttempt, a.Reason,
		fmt.Sprintf("Attempt %d on %s", a.Number, a.Channel), spaced(a.Reason))}
	if a.SettledAt != nil && a.Outcome != "" {
		out = append(out, event(*a.SettledAt, EventAnswer, a.Outcome, a.answerTitle(),
			prefixed("code ", a.Code), prefixed("reference ", a.Reference),
			fmt.Sprintf("after %d ms", a.SettledAt.Sub(a.ClaimedAt).Milliseconds())))
	}
	if a.ReceiptAt != nil && a.Receipt != "" {
		out = append(out, event(*a.ReceiptAt, EventReceipt, a.Receipt, "Receipt: "+spaced(a.Receipt),
			spaced(a.ReceiptCause), prefixed("code ", a.ReceiptCode)))
	}
	if a.ContradictedAt != nil {
		out = append(out, event(*a.ContradictedAt, EventContradicted, string(ledger.Delivered),
			"A receipt says delivered, although "+a.Channel+" had not taken it"))
	}
	return out
}

// answerTitle says who knew the outcome.
func (a *Attempt) answerTitle() string {
	if answeredWords[a.Code] != "" {
		return fmt.Sprintf("Outcome of attempt %d on %s: %s", a.Number, a.Channel, a.Outcome)
	}
	return "Answer of " + a.Channel + ": " + a.Outcome
}

func ambiguityEvents(d *ledger.AmbiguityRecord) []Event {
	var out []Event
	if !d.OpenedAt.IsZero() {
		opened := Event{
			At: d.OpenedAt, Kind: EventAmbiguous, Attempt: d.Attempt, Channel: d.Channel,
			Title: "No answer of " + d.Channel + ": it may have taken the message",
		}
		if words := clarifyWords[string(d.Step)]; words != "" {
			opened.Detail = "To find out, " + words + "."
		}
		if d.ResolvedAs == "" {
			opened.Until = d.Until
		}
		out = append(out, opened)
	}
	if d.ResolvedAs == "" || d.ClosedAt.IsZero() {
		return out
	}
	settled := Event{
		At: d.ClosedAt, Kind: EventSettled, Attempt: d.Last, Channel: d.Channel,
		Result: string(d.ResolvedAs), Author: d.Author, Detail: d.Note,
		Title: "The search found " + resolutionWords[string(d.ResolvedAs)],
	}
	settled.Login, settled.Via = settledBy(d)
	switch {
	case d.Author != "":
		settled.Title = d.Author + " settled it as " + spaced(string(d.ResolvedAs))
	case d.Step == ledger.NoStep:
		settled.Title = "Nobody can find out: " + spaced(string(d.ResolvedAs))
	}
	return append(out, settled)
}

// waitEvents is the present wait of a message.
func waitEvents(e *Explanation, m *ledger.Message) []Event {
	switch {
	case m.State == ledger.Waiting && !m.WaitingSince.IsZero():
		return []Event{{
			At: m.WaitingSince, Kind: EventWaiting, Until: m.NextAt, Result: m.Reason,
			Title: "Waits" + prefixed(" for ", m.WaitsFor), Detail: WaitWords(m.Reason),
		}}
	case m.State == ledger.Retry && !m.NextAt.IsZero():
		at := m.ReceivedAt
		for i := range e.Attempts {
			if settled := e.Attempts[i].SettledAt; settled != nil && settled.After(at) {
				at = *settled
			}
		}
		return []Event{{At: at, Kind: EventRetry, Until: m.NextAt, Title: "To be tried again"}}
	}
	return nil
}

// ending is how the message ended; nothing for one to which more may happen.
func ending(r *ledger.Record) []Event {
	m := &r.Message
	if r.FinishedAt.IsZero() || !m.State.Final() {
		return nil
	}
	out := Event{
		At: r.FinishedAt, Kind: EventEnded, Result: string(m.State),
		Title: "Ended: " + spaced(string(m.State)), Detail: spaced(m.Reason),
	}
	switch {
	case m.State != ledger.Failed && m.State != ledger.Dead:
	case m.Reason == ledger.ReasonCancelled:
		out.Kind, out.Author, out.Detail = EventCancelled, r.CancelledBy, ""
		out.Title = "Cancelled" + prefixed(" by ", r.CancelledBy)
	case m.Reason == causeExpired:
		out.Kind, out.Title, out.Detail = EventExpired, "Expired: its deadline passed", ""
	}
	return []Event{out}
}

func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }

// prefixed is a text after its prefix; empty without the text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
