package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// restartedLimit is the result of limits set --restart. Scripts rely on the JSON names.
type restartedLimit struct {
	Restarted bool            `json:"restarted"` // false in a dry run
	DryRun    bool            `json:"dry_run"`
	Version   int64           `json:"version"`
	Channel   string          `json:"channel"` // empty for a limit over all channels
	Scope     string          `json:"scope"`
	Window    string          `json:"window"`
	Unit      string          `json:"unit"`
	Was       restartedWindow `json:"was"`
	Now       restartedWindow `json:"now"`
}

// restartedWindow is the window before or after. In a dry run it is not known what the new one
// would start with.
type restartedWindow struct {
	Start   time.Time        `json:"window_start"`
	Granted *status.Quantity `json:"granted"`
}

// restartLimit restarts the current window of a limit whose window begins in the future.
func (ch *change) restartLimit(ctx context.Context, channel string, asked admission.Limit) error {
	limit, err := ch.limitToRestart(channel, asked.Key())
	if err != nil {
		return err
	}
	out := restartedLimit{
		DryRun: ch.flags.dryRun, Version: ch.Current.Version, Channel: channel,
		Scope: limit.Scope.String(), Window: limit.Window.String(), Unit: limit.Unit.String(),
	}
	if ch.flags.dryRun {
		err = ch.tryRestart(ctx, limit, &out)
	} else {
		err = ch.restart(ctx, limit, &out)
	}
	if err != nil {
		return err
	}
	return ch.printRestart(limit, &out)
}

// limitToRestart is the limit from the document in force.
func (ch *change) limitToRestart(channel string, key admission.Key) (*admission.Limit, error) {
	if err := ch.need(); err != nil {
		return nil, err
	}
	if channel != "" && ch.Base().Channel(channel) == nil {
		return nil, unknownChannel(channel, ch.Base())
	}
	limits := control.LimitsOf(ch.Base(), channel)
	limit, ok := admission.Find(limits, key)
	if !ok {
		return nil, usage(fmt.Errorf(`there is no limit %s; see "dispatcher limits show"`,
			key.On(channel)))
	}
	return &limit, nil
}

// restart restarts the window.
func (ch *change) restart(ctx context.Context, limit *admission.Limit, out *restartedLimit) error {
	done, err := ch.ledger.Limits.RestartWindow(ctx, ledger.Restart{
		Channel: out.Channel, Limit: *limit, Zone: ch.Base().Timezone, Expect: &ch.Current.Version,
		Author: ch.flags.author, Reason: ch.flags.reason,
	})
	if ahead, ok := errors.AsType[*ledger.NotAheadError](err); ok {
		return ch.nothingToRestart(limit, out.Channel, ahead.Start)
	}
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return ch.Overtaken(ctx, conflict)
	}
	if errors.Is(err, ledger.ErrNoLimit) {
		return withoutRow(limit, out.Channel)
	}
	if err != nil {
		return err
	}
	was, now := status.QuantityOf(limit, done.Was.Granted), status.QuantityOf(limit, done.Now.Granted)
	out.Restarted, out.Version = true, done.Version
	out.Was, out.Now = restartedWindow{done.Was.Start, &was}, restartedWindow{done.Now.Start, &now}
	return nil
}

// tryRestart is restart for a dry run.
func (ch *change) tryRestart(
	ctx context.Context, limit *admission.Limit, out *restartedLimit,
) error {
	present, err := ch.ledger.Limits.Present(ctx)
	if err != nil {
		return err
	}
	now := &status.Counters{Present: &present, Zone: ch.Base().Timezone}
	if now.Stored(out.Channel, limit.Key()) == nil {
		return withoutRow(limit, out.Channel)
	}
	c := now.Counter(out.Channel, limit)
	if !c.Ahead(now.Now) {
		return ch.nothingToRestart(limit, out.Channel, c.Start)
	}
	was := status.QuantityOf(limit, c.Granted)
	out.Was = restartedWindow{c.Start.UTC(), &was}
	out.Now.Start = limit.Window.Restart(now.Now, ch.Base().Timezone).UTC()
	return nil
}

// withoutRow says how a limit of the document gets a row in the ledger again after somebody has
// deleted it. The new row has the latest window in the limit's history that is not over; after a
// clock that was ahead, that window begins in the future.
func withoutRow(limit *admission.Limit, channel string) error {
	return failed(fmt.Errorf(`limit %s is in the document, but the ledger has no row of it: `+
		`somebody deleted that. Nothing was changed; give it another max with "dispatcher `+
		`limits set" and take that back: each new version of the document writes the rows that `+
		`are missing; run this again if "dispatcher limits show" then says that its window `+
		`begins in the future`,
		limit.Key().On(channel)))
}

// nothingToRestart refuses a window that is, or is nearly, the current one.
func (ch *change) nothingToRestart(limit *admission.Limit, channel string, start time.Time) error {
	began := "nothing was granted in it yet"
	if start.After(time.Unix(0, 0)) {
		began = "its window is that of " + status.WindowWords(start, ch.Base().Timezone) + " (" +
			ch.Base().Timezone.String() + ")"
	}
	return failed(fmt.Errorf("limit %s does not begin in the future: %s. Nothing was changed; "+
		"started again, it would give its slots away twice",
		limit.Key().On(channel), began))
}

// printRestart prints the windows before and after.
func (ch *change) printRestart(limit *admission.Limit, out *restartedLimit) error {
	as, zone := ch.flags.as, ch.Base().Timezone
	if as != formatTable {
		rows := []restartedLimit{*out}
		return as.write(ch.cli.out, out, list(as, rows, []column[restartedLimit]{
			{key: "channel"},
			{key: "scope"},
			{key: "window"},
			{key: "unit"},
			{name: "was_start", cell: func(r *restartedLimit) any { return r.Was.Start }},
			{name: "was_granted", cell: func(r *restartedLimit) any { return r.Was.Granted }},
			{name: "window_start", cell: func(r *restartedLimit) any { return r.Now.Start }},
			{name: "granted", cell: func(r *restartedLimit) any { return r.Now.Granted }},
			{key: "restarted"},
		}...))
	}
	text := fmt.Sprintf("The window of %s that begins at %s has granted %s.",
		limit.Key().On(out.Channel), status.WindowWords(out.Was.Start, zone),
		out.sum(limit, out.Was.Granted))
	if out.DryRun {
		text += fmt.Sprintf(" Dry run: nothing was written. The one of %s would take its place, "+
			"%s.", status.WindowWords(out.Now.Start, zone), beginningWords(limit))
	} else {
		text += fmt.Sprintf(" The one of %s takes its place (%s); so far it has granted %s.",
			status.WindowWords(out.Now.Start, zone), zone, out.sum(limit, out.Now.Granted))
	}
	fmt.Fprintln(ch.cli.out, wrapped(text, 100))
	return nil
}

// beginningWords say what counts in the window that a limit would get, see ledger.RestartWindow.
func beginningWords(l *admission.Limit) string {
	if l.Window == admission.Second {
		return "with nothing granted in it"
	}
	return "with what was claimed in it, and later while the clock was ahead"
}

// sum is an amount with its unit.
func (*restartedLimit) sum(l *admission.Limit, q *status.Quantity) string {
	if l.Unit == admission.Money {
		return q.String() + " " + l.Currency
	}
	return q.String() + " " + l.Unit.String()
}

// restartMoves are the selected restarts of limits, in the form of the history.
func restartMoves(
	restarts []ledger.Restarted, asked func(channel string, key admission.Key) bool,
) []limitMove {
	var moves []limitMove
	for i := range restarts {
		r := &restarts[i]
		if !asked(r.Channel, r.Key) {
			continue
		}
		was, now := restartWords(r.Key, r.Was), restartWords(r.Key, r.Now)
		moves = append(moves, limitMove{
			Version: r.Version, CreatedAt: r.At, Author: r.Author, Login: r.Login, Reason: r.Reason,
			Channel: r.Channel,
			Scope:   r.Key.Scope.String(), Window: r.Key.Window.String(), Unit: r.Key.Unit.String(),
			What: "restart", From: &was, To: &now, key: r.Key,
		})
	}
	return moves
}

// restartWords are a window with what it has granted.
func restartWords(k admission.Key, w ledger.RestartedWindow) string {
	granted := number(w.Granted)
	if k.Unit == admission.Money {
		granted = report.Money(w.Granted)
	}
	return w.Start.Format(instant) + ", " + granted + " granted"
}

// mergedMoves are the changes of limits and the restarts of their windows, newest first: those of
// the last versions and restarts, limit in all.
func mergedMoves(moves, restarts []limitMove, limit int) []limitMove {
	out := append(slices.Clone(moves), restarts...)
	slices.SortStableFunc(out, func(a, b limitMove) int { return b.CreatedAt.Compare(a.CreatedAt) })
	told := 0
	for i := range out {
		if i > 0 && out[i].CreatedAt.Equal(out[i-1].CreatedAt) {
			continue
		}
		if told++; told > limit {
			return out[:i]
		}
	}
	return out
}
