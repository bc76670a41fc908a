package pages

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
)

const (
	// cancelPage is how many messages are cancelled in one transaction.
	cancelPage = 500
	// mostCancelled is how many messages one form cancels, and cancelTime how long it goes on, so
	// that its answer comes within a few seconds.
	mostCancelled = 20 * cancelPage
	cancelTime    = 10 * time.Second
)

// cancelWaiting ends the messages of a lane, a route, a tenant or a prefix that have not left.
// Unless "do" is "cancel" it only counts them. The answer is a page with the form as it was sent,
// and a form that cancels the rest. It is not a redirect, because a prefix may be a whole number,
// and no URL may hold a number.
func (s *Server) cancelWaiting(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	now, err := s.cfg.Ledger.Clock(r.Context())
	if err != nil {
		return err
	}
	form := &cancelForm{
		Kind: r.PostFormValue("kind"), Name: strings.TrimSpace(r.PostFormValue("name")),
		Since: r.PostFormValue("since"), Until: r.PostFormValue("until"), Reason: by.Reason,
	}
	filter, err := form.filter(now)
	if err != nil {
		return err
	}
	if r.PostFormValue("do") != "cancel" {
		n, err := control.CountUnsent(r.Context(), s.cfg.Ledger, filter)
		if err != nil {
			return err
		}
		form.Said = plural(n, "message") + " would be cancelled."
		return s.showPauses(w, r, http.StatusOK, form)
	}
	rest := &cancelRest{Until: filter.Before.Format(time.RFC3339Nano)}
	if !filter.Since.IsZero() {
		rest.Since = filter.Since.Format(time.RFC3339Nano)
	}
	for name, field := range map[string]*int64{"after": &rest.After, "done": &rest.Done} {
		if sent := r.PostFormValue(name); sent != "" {
			if *field, err = strconv.ParseInt(sent, 10, 64); err != nil || *field < 0 {
				return refuse("the form does not say where it goes on: reload the page")
			}
		}
	}
	if r.PostFormValue("after") == "" { // the form that cancels the rest has it
		if err := control.NoteCancellation(r.Context(), s.cfg.Ledger, filter, *by); err != nil {
			return err
		}
	}
	return s.cancelSome(w, r, form, rest, filter, by)
}

// cancelSome ends messages from where rest begins, and shows what became of them. After a failure
// it shows how many were cancelled before.
func (s *Server) cancelSome(
	w http.ResponseWriter, r *request, form *cancelForm, rest *cancelRest, filter *control.Unsent,
	by *control.By,
) error {
	began, most := time.Now(), s.mostCancelled
	size := min(s.cancelPage, most)
	sum, err := control.EachPage(rest.After,
		func(sum *control.Page[int64]) bool {
			return sum.Tried() >= int64(most) || time.Since(began) > cancelTime
		},
		func(after int64, _ *control.Page[int64]) (control.Page[int64], error) {
			return control.CancelPage(r.Context(), s.cfg.Ledger, filter, after, size, *by)
		})
	if err != nil && sum.Tried() == 0 && rest.Done == 0 {
		return err
	}
	rest.After, rest.Done = sum.Last, rest.Done+sum.Done
	form.Said = plural(rest.Done, "message") + " cancelled."
	if left := len(sum.Left); left > 0 {
		form.Said += fmt.Sprintf(" %s could not be: %s %s.", plural(left, "message"), sum.Left[0].ID,
			sum.Left[0].Why)
	}
	if sum.More {
		form.Rest = rest
	}
	switch {
	case err != nil:
		s.cfg.Log.Warn().Err(err).Msg("a cancellation by the console was not finished")
		form.Said += " Then the database failed; the log of this instance says why. What is " +
			"cancelled stays so: cancel the rest."
		if s.showPauses(w, r, http.StatusInternalServerError, form) != nil {
			s.fail(w, r, http.StatusInternalServerError, form.Said) // the page needs the database, too
		}
		return nil
	case sum.More:
		form.Said += " There are more: cancel the rest."
	}
	return s.showPauses(w, r, http.StatusOK, form)
}

// filter selects by one word, as a pause does, and by time.
func (c *cancelForm) filter(now time.Time) (*control.Unsent, error) {
	f := &control.Unsent{}
	field := map[string]*string{
		"lane": &f.Lane, "route": &f.Route, "tenant": &f.Tenant, "prefix": &f.Prefix,
	}[c.Kind]
	if field == nil || c.Name == "" {
		return nil, refuse("name the lane, the route, the tenant or the prefix whose messages are " +
			"to be cancelled")
	}
	*field = c.Name
	f.Before = now
	for _, bound := range []struct {
		text string
		at   *time.Time
	}{{c.Since, &f.Since}, {c.Until, &f.Before}} {
		if text := strings.TrimSpace(bound.text); text != "" {
			at, err := control.TimeOrAgo(text, now)
			if err != nil {
				return nil, err
			}
			*bound.at = at
		}
	}
	return f, f.Check()
}
