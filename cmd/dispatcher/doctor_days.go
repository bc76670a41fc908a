package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dispatcher/ledger"
)

// checkDays checks how long the ledger keeps what. A missing or outdated schema is reported by the
// check of the database.
func (ck *checker) checkDays(ctx context.Context) []finding {
	s := ck.settings
	if s.PostgresURL == "" {
		return nil // the check of the settings has reported it
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := ledger.Inspect(ctx, s.PostgresURL)
	if err != nil || c.Conflict != nil || c.Schema < c.Latest {
		return nil
	}
	l, err := openLedger(ctx, s, connect)
	if err != nil {
		return nil
	}
	defer l.Close()
	state, err := l.Days.State(ctx)
	if err != nil {
		return []finding{broken("days", postgresTrouble(s, err))}
	}
	keep := ledger.Retention{
		IDs: s.IDRetention, Payloads: s.PayloadRetention, Facts: s.LedgerRetention,
	}
	return []finding{
		retentionFinding(&keep, state.LeastKept), daysFinding(&state, &keep), skippedFinding(&state),
		locksFinding(&state, &keep),
	}
}

// retentionFinding warns of days that would be dropped sooner than the owner of the ledger allows.
func retentionFinding(r *ledger.Retention, leastKept time.Duration) finding {
	const check = "retention"
	if r.Facts < leastKept {
		return warned(check, fmt.Sprintf("days are to be dropped after %s, and the owner of the "+
			"ledger keeps them for %s", inDays(r.Facts), inDays(leastKept)),
			`raise DISPATCHER_LEDGER_RETENTION, or repeat "dispatcher migrate --roles" with it`)
	}
	return fine(check, "numbers and texts for %s after the end of a message, the rest for %s, "+
		"ids for %s", inDays(r.Payloads), inDays(r.Facts), inDays(r.IDs))
}

// inDays writes a duration in days.
func inDays(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// lateDays is how long after its time a day may still exist: instances check every few minutes, and
// dropping a day takes a while.
const lateDays = 3 * time.Hour

// daysFinding warns of partitions that were not made or not dropped.
func daysFinding(s *ledger.DaysState, r *ledger.Retention) finding {
	const check = "days"
	const fix = `a running dispatcher makes and drops them; look in its log for "days"`
	overdue := func(day ledger.Day, keep time.Duration) bool {
		return s.Now.Sub((day + 1).Begin()) > keep+lateDays
	}
	switch {
	case s.Latest <= ledger.DayAt(s.Now):
		return warned(check, fmt.Sprintf("partitions are made until %s only", s.Latest), fix)
	case overdue(s.OldestPayloads, r.Payloads):
		return warned(check, fmt.Sprintf("numbers and texts of %s are still there",
			s.OldestPayloads), fix)
	case overdue(s.Oldest, max(r.Facts, s.LeastKept)) && len(s.Skipped) == 0:
		return warned(check, fmt.Sprintf("%s is still there", s.Oldest), fix)
	case s.Now.Sub(s.Turned) > r.IDs+lateDays:
		return warned(check, fmt.Sprintf("no ids were forgotten since %s",
			s.Turned.Format(time.DateOnly)), fix)
	}
	late := ""
	if s.LatePayloads > 0 {
		late = fmt.Sprintf(" (and %d of messages of older days)", s.LatePayloads)
	}
	return fine(check, "from %s to %s; numbers and texts from %s on%s", s.Oldest, s.Latest,
		s.OldestPayloads, late)
}

// skippedFinding lists days that are kept because some of their messages have not ended, or ended
// in the last half of the retention.
func skippedFinding(s *ledger.DaysState) finding {
	const check = "old days"
	if len(s.Skipped) == 0 {
		return fine(check, "none is kept for messages that have not ended")
	}
	list := make([]string, len(s.Skipped))
	for i, d := range s.Skipped {
		list[i] = d.String()
	}
	return warned(check, "kept although they are old, because so many messages of them have not "+
		"ended, or ended lately: "+strings.Join(list, ", "), "messages end at their deadline, or "+
		`with "dispatcher ambiguous settle"; a day is dropped half of DISPATCHER_LEDGER_RETENTION later`)
}

// locksFinding warns of a server with too few locks. One query over all days, and half as many
// locks for everything else, must fit.
func locksFinding(s *ledger.DaysState, r *ledger.Retention) finding {
	const check = "locks"
	days := int(max(r.Facts, s.LeastKept)/(24*time.Hour)) + 4
	if need := days * ledger.LocksPerDay * 3 / 2; s.Locks < need {
		return warned(check, fmt.Sprintf("the server has room for %d locks; questions about %d days "+
			"may need %d", s.Locks, days, need), "raise max_locks_per_transaction of the server, or "+
			"lower DISPATCHER_LEDGER_RETENTION")
	}
	return fine(check, "the server has room for %d, enough for %d days", s.Locks, days)
}
