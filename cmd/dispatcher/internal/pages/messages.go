package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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
	Timeline []timelineEntry
	// Cancellable is whether it can be cancelled: it has not left.
	Cancellable bool
}

// timelineEntry is one event of a message, with the CSS class of its mark.
type timelineEntry struct {
	report.Event
	Level string
}

// findPage has the forms to find messages, and what was found.
type findPage struct {
	ID       string // of a message that is not there
	Pending  string // what the cancellation of that message says; empty if there is none
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
		return refuse("this is not a phone number: write it with plus and country code")
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
		p := &findPage{ID: id, Days: findDays}
		if pending, ok := errors.AsType[*lookup.Pending](err); ok {
			p.Pending = sentence(pending.Error())
		}
		s.render(w, r, http.StatusNotFound, "messages", "Messages", p)
		return nil
	}
	if err != nil {
		return err
	}
	p := &messagePage{Explanation: e, Timeline: timeline(e)}
	switch ledger.State(e.State) {
	case ledger.Scheduled, ledger.Waiting, ledger.Retry:
		p.Cancellable = true
	default:
	}
	return s.show(w, r, "message", "Message "+id, p)
}

// cancel ends a message. With "pending", one that is not in the ledger yet is ended when it comes.
func (s *Server) cancel(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	was, err := control.Cancel(r.Context(), s.cfg.Ledger, id, r.PostFormValue("pending") != "", *by)
	if err != nil {
		return err
	}
	said := control.PendingWords(id)
	if was != "" {
		said = fmt.Sprintf("The message is cancelled. It was %s.", was)
	}
	return s.done(w, r, messagePath(id), said)
}

// timeline marks the events of a message by how they went.
func timeline(e *report.Explanation) []timelineEntry {
	out := make([]timelineEntry, len(e.Timeline))
	for i := range e.Timeline {
		out[i] = timelineEntry{e.Timeline[i], levelOf(&e.Timeline[i])}
	}
	return out
}

// levelOf is the CSS class of an event; empty for one that is neither good nor bad.
func levelOf(e *report.Event) string {
	switch e.Kind {
	case report.EventAnswer, report.EventReceipt, report.EventSettled, report.EventEnded:
	case report.EventAmbiguous, report.EventContradicted:
		return "warn"
	case report.EventCancelled, report.EventExpired:
		return "bad"
	default:
		return ""
	}
	switch e.Result {
	case "accepted", "delivered", "taken":
		return "good"
	case "unknown", "throttled", "not_taken", "resent", "final", "no_receipt":
		return "warn"
	}
	return "bad"
}
