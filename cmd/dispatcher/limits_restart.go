package main

import (
	"context"
	"fmt"
	"slices"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// restartLimit restarts the current window of a limit whose window begins in the future.
func (ch *change) restartLimit(ctx context.Context, channel string, asked admission.Limit) error {
	out, err := ch.RestartLimit(ctx, channel, asked.Key())
	if err != nil {
		return err
	}
	return ch.printRestart(out.Limit, out)
}

// printRestart prints the windows before and after.
func (ch *change) printRestart(limit *admission.Limit, out *control.RestartedLimit) error {
	as, zone := ch.flags.as, ch.Base().Timezone
	if as != formatTable {
		rows := []control.RestartedLimit{*out}
		return as.write(ch.cli.out, out, list(as, rows, []column[control.RestartedLimit]{
			{key: "channel"},
			{key: "scope"},
			{key: "window"},
			{key: "unit"},
			{name: "was_start", cell: func(r *control.RestartedLimit) any { return r.Was.Start }},
			{name: "was_granted", cell: func(r *control.RestartedLimit) any { return r.Was.Granted }},
			{name: "window_start", cell: func(r *control.RestartedLimit) any { return r.Now.Start }},
			{name: "granted", cell: func(r *control.RestartedLimit) any { return r.Now.Granted }},
			{key: "restarted"},
		}...))
	}
	text := fmt.Sprintf("The window of %s that begins at %s has granted %s.",
		limit.Key().On(out.Channel), status.WindowWords(out.Was.Start, zone),
		sumWords(limit, out.Was.Granted))
	if out.DryRun {
		text += fmt.Sprintf(" Dry run: nothing was written. The one of %s would take its place, "+
			"%s.", status.WindowWords(out.Now.Start, zone), beginningWords(limit))
	} else {
		text += fmt.Sprintf(" The one of %s takes its place (%s); so far it has granted %s.",
			status.WindowWords(out.Now.Start, zone), zone, sumWords(limit, out.Now.Granted))
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

// sumWords is an amount with its unit.
func sumWords(l *admission.Limit, q *status.Quantity) string {
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
			Version: r.Version, CreatedAt: r.At, Author: r.Author, Login: r.Login,
			Via: r.Via, Reason: r.Reason,
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

// mergedMoves merges the changes of limits with the restarts of their windows, newest first. It
// keeps those of the last versions and restarts, limit in all.
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
