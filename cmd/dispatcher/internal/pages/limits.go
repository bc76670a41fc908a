package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

// mostLimits is how many limits the page of a channel lists, mostOverview the overview. A limit of
// each tenant has a row for each tenant.
const (
	mostLimits   = 50
	mostOverview = 20
)

// limitTable is a list of limits, the fullest first.
type limitTable struct {
	Rows []limitNow
	More int // limits that are not listed
	// Ahead names the limits whose window begins in the future, so that it can be restarted.
	Ahead []string
	// Set names the limits of the document whose max can be set, Prepaid the budgets that can be
	// topped up.
	Set, Prepaid []string
}

// limitNow is a limit, and how full it is.
type limitNow struct {
	Channel string // empty for a limit over all channels
	Counts  string // which messages it counts
	status.Limit
	Filled float64
	Level  string // CSS class of the bar
}

// newLimitTable lists the limits of one channel, which the page can change. With an empty channel
// it lists all limits, and those over all channels can be changed.
func newLimitTable(doc *config.Routing, now *status.Limits, channel string) *limitTable {
	var rows []limitNow
	for i := range now.Channels {
		if c := &now.Channels[i]; channel == "" || c.Channel == channel {
			for j := range c.Limits {
				rows = append(rows, newLimitNow(c.Channel, &c.Limits[j]))
			}
		}
	}
	if channel == "" {
		for i := range now.Limits {
			rows = append(rows, newLimitNow("", &now.Limits[i]))
		}
	}
	var ahead []string
	for i := range rows {
		if rows[i].Ahead {
			ahead = append(ahead, rows[i].Key.On(rows[i].Channel))
		}
	}
	slices.SortStableFunc(rows, func(a, b limitNow) int { return cmp.Compare(b.Filled, a.Filled) })
	listed := min(len(rows), mostLimits)
	if channel == "" {
		listed = min(listed, mostOverview)
	}
	out := &limitTable{Rows: rows[:listed], More: len(rows) - listed, Ahead: ahead}
	out.Set, out.Prepaid = control.LimitNames(doc, channel)
	return out
}

func newLimitNow(channel string, l *status.Limit) limitNow {
	out := limitNow{Channel: channel, Counts: scopeWords(l), Limit: *l, Filled: 1}
	switch {
	case l.Key.Scope.Each():
		out.Filled = 0 // it grants nothing itself: each tenant has a row of its own
	case l.Max.Units > 0:
		out.Filled = float64(l.Granted.Units) / float64(l.Max.Units)
	}
	switch {
	case out.Filled >= 1:
		out.Level = "bad"
	case out.Filled >= 0.8:
		out.Level = "warn"
	}
	return out
}

// scopeWords says which messages a limit counts.
func scopeWords(l *status.Limit) string {
	kind, name, scoped := strings.Cut(l.Scope, ":")
	switch {
	case !scoped:
		return "all messages"
	case l.Key.Scope.Each():
		return "each tenant"
	}
	return kind + " " + name
}

// restartLimit starts the current window of a limit whose stored window begins in the future.
func (s *Server) restartLimit(w http.ResponseWriter, r *request) error {
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	done, err := draft.RestartNamed(r.Context(), r.PostFormValue("limit"))
	if err != nil {
		return err
	}
	s.facts.forget()
	return s.done(w, r, pageOfLimits(done.Channel), fmt.Sprintf(
		"The window of limit %s is now that of %s (UTC); so far it has granted %s %s.",
		done.Limit.Key().On(done.Channel), status.WindowWords(done.Now.Start, time.UTC),
		done.Now.Granted, cmp.Or(done.Limit.Currency, done.Unit)))
}

// pageOfLimits is the page that lists the limits of a channel, or those over all channels.
func pageOfLimits(channel string) string {
	if channel == "" {
		return "/"
	}
	return "/channels/" + url.PathEscape(channel)
}

// setMax changes the max of a limit.
func (s *Server) setMax(w http.ResponseWriter, r *request) error {
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	done, channel, err := draft.SetMax(r.Context(), r.PostFormValue("limit"),
		strings.TrimSpace(r.PostFormValue("max")))
	if err != nil {
		return err
	}
	return s.changed(w, r, pageOfLimits(channel), done)
}

// topUp adds to a prepaid budget. The form has a key of its own, so that it counts once when it is
// sent twice.
func (s *Server) topUp(w http.ResponseWriter, r *request) error {
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	key := r.PostFormValue("key")
	if key == "" {
		return refuse("the form has no key, by which it is known when it comes twice: reload the page")
	}
	done, err := draft.TopUpNamed(r.Context(), r.PostFormValue("limit"),
		strings.TrimSpace(r.PostFormValue("amount")), key)
	if err != nil {
		return err
	}
	s.facts.forget()
	return s.done(w, r, pageOfLimits(done.Channel), fmt.Sprintf(
		"The budget was topped up by %s to %s %s.", done.Amount, done.After, done.Currency))
}
