package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// messagePage is one message: its explanation and its timeline.
type messagePage struct {
	*report.Explanation
	Version  int64 // of the routing in force; forms send it
	Timeline []timelineEntry
	// Cancellable is whether it can be cancelled: it has not left.
	Cancellable bool
}

// timelineEntry is one event of a message.
type timelineEntry struct {
	At    time.Time
	Level string // CSS class of the mark
	What  string
	More  string
}

// findPage has the forms to find messages, and what was found.
type findPage struct {
	ID       string // of a message that is not there
	Searched bool   // by number
	Days     int
	Found    []ledger.FoundMessage
	More     bool // older ones are not listed
}

const (
	// mostFound is how many messages to one number a page lists.
	mostFound = 50
	// findDays is how far back a search by number goes, if the form does not say it.
	findDays     = 7
	mostFindDays = 31
)

func (s *Server) findMessage(w http.ResponseWriter, r *request) error {
	if id := strings.TrimSpace(r.URL.Query().Get("id")); id != "" {
		http.Redirect(w, r.Request, messagePath(id), http.StatusSeeOther)
		return nil
	}
	return s.show(w, r, "messages", "Messages", &findPage{Days: findDays})
}

// findByNumber lists the messages to a number. The form is sent by POST, so that the number is in
// no URL and no log of a proxy, and the page that comes back does not have it.
func (s *Server) findByNumber(w http.ResponseWriter, r *request) error {
	number, ok := numbers.Typed(s.cfg.Region, r.PostFormValue("number"))
	if !ok {
		return refuse("the number is none: write it with plus and country code")
	}
	days, err := strconv.Atoi(r.PostFormValue("days"))
	if err != nil || days < 1 || days > mostFindDays {
		return refuse(fmt.Sprintf("days is a number from 1 to %d", mostFindDays))
	}
	found, err := lookup.ByNumber(r.Context(), s.cfg.Ledger, &lookup.NumberQuery{
		Keys: s.cfg.Keys, Number: number, Days: days, Limit: mostFound + 1,
	})
	if err != nil {
		return err
	}
	listed := min(len(found), mostFound)
	return s.show(w, r, "messages", "Messages", &findPage{
		Searched: true, Days: days, Found: found[:listed], More: len(found) > listed,
	})
}

func messagePath(id string) string { return "/messages/" + url.PathEscape(id) }

func (s *Server) message(w http.ResponseWriter, r *request) error {
	id := r.PathValue("id")
	e, err := lookup.Explain(r.Context(), s.cfg.Ledger, s.cfg.Keys, id, r.may(access.Operate))
	if errors.Is(err, ledger.ErrNoMessage) {
		s.render(w, r, http.StatusNotFound, "messages", "Messages",
			&findPage{ID: id, Days: findDays})
		return nil
	}
	if err != nil {
		return err
	}
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return err
	}
	p := &messagePage{Explanation: e, Version: current.Version, Timeline: timeline(e)}
	switch ledger.State(e.State) {
	case ledger.Scheduled, ledger.Waiting, ledger.Retry:
		p.Cancellable = true
	default:
	}
	return s.show(w, r, "message", "Message "+id, p)
}

func (s *Server) cancel(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	was, err := control.Cancel(r.Context(), s.cfg.Ledger, id, *by)
	if err != nil {
		return err
	}
	return s.done(w, r, messagePath(id), fmt.Sprintf("The message is cancelled. It was %s.", was))
}

// timeline lists the events of a message in order.
func timeline(e *report.Explanation) []timelineEntry {
	received := "Received"
	if e.Lane != "" {
		received += " on lane " + e.Lane
	}
	out := []timelineEntry{{At: e.ReceivedAt, What: received, More: planWords(e)}}
	for i := range e.Attempts {
		out = append(out, attemptEntries(&e.Attempts[i])...)
	}
	slices.SortStableFunc(out, func(a, b timelineEntry) int { return a.At.Compare(b.At) })
	return out
}

// planWords says how the first choice was made.
func planWords(e *report.Explanation) string {
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

func attemptEntries(a *report.Attempt) []timelineEntry {
	out := []timelineEntry{{
		At: a.ClaimedAt, What: fmt.Sprintf("Attempt %d on %s", a.Number, a.Channel),
		More: strings.ReplaceAll(a.Reason, "_", " "),
	}}
	if a.SettledAt != nil {
		answer := timelineEntry{At: *a.SettledAt, What: "Answer of " + a.Channel + ": " + a.Outcome}
		switch a.Outcome {
		case "accepted":
			answer.Level = "good"
		case "unknown", "throttled":
			answer.Level = "warn"
		default:
			answer.Level = "bad"
		}
		var more []string
		if a.Code != "" {
			more = append(more, "code "+a.Code)
		}
		if a.Reference != "" {
			more = append(more, "reference "+a.Reference)
		}
		more = append(more, fmt.Sprintf("after %d ms", a.SettledAt.Sub(a.ClaimedAt).Milliseconds()))
		answer.More = strings.Join(more, ", ")
		out = append(out, answer)
	}
	if a.ReceiptAt != nil {
		receipt := timelineEntry{
			At: *a.ReceiptAt, Level: "good", What: "Receipt: " + strings.ReplaceAll(a.Receipt, "_", " "),
			More: strings.Join(slices.DeleteFunc([]string{a.ReceiptCause, a.ReceiptCode},
				func(s string) bool { return s == "" }), ", "),
		}
		if a.Receipt != string(ledger.Delivered) {
			receipt.Level = "bad"
		}
		out = append(out, receipt)
	}
	return out
}
