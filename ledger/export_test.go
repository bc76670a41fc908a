package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A test may hold a transaction for longer than the dispatcher ever does.
func init() {
	hotSettings["idle_in_transaction_session_timeout"] = "90s"
	hotSettings["statement_timeout"] = "5min"
}

// PlanOf is planOf for tests outside the package.
var PlanOf = planOf

// Believe sets the day and the turn of the tables of ids that a process knows.
func (l *Ledger) Believe(day Day, turn int64) {
	l.calendar.today.Store(int32(day))
	l.calendar.turn.Store(turn)
}

// StoreOpenClaims does what ReleaseSlots does with old claims of this process, with all of them.
func (s *Settlements) StoreOpenClaims(ctx context.Context) error {
	return s.storeOwn(ctx, s.instance.Load(), 0)
}

// ConfirmIdentity does what a process does at each keepInterval.
func (s *Instances) ConfirmIdentity() { s.confirmIdentity() }

// Held is how many connections for claims and settlements are in use.
func (l *Ledger) Held() int { return int(l.hot.Stat().AcquiredConns()) }

// ReportPages makes the session for claims and settlements, of which there is one, report what it
// has read so far.
func (l *Ledger) ReportPages(ctx context.Context) error {
	_, err := l.hot.Exec(ctx, `select pg_stat_force_next_flush()`)
	return err
}

// LocksOfJoining are the statements by which recording a part locks its group.
func LocksOfJoining(in Inbound) []string {
	g := in.group()
	return []string{
		fmt.Sprintf(`select pg_advisory_xact_lock_shared(%d)`, joining),
		fmt.Sprintf(`select pg_advisory_xact_lock(%d, %d)`, joiningGroup, g.lock()),
	}
}

// Lead tries to become the process that publishes, and reports whether this process is it.
func (s *Outbox) Lead(ctx context.Context) (bool, error) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return s.out.takeLeadership(ctx)
}

// Versions lists all versions, newest first.
func (s *Routing) Versions(ctx context.Context) (all []RoutingVersion, err error) {
	numbers, err := rows(ctx, s.db, pgx.RowTo[int64],
		`select version from facts.routing_versions order by version desc`)
	if err != nil {
		return nil, wrap("list routing versions", err)
	}
	for _, number := range numbers {
		v, err := s.Version(ctx, number)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Closed reports whether Close was called.
func (l *Ledger) Closed() bool { return l.closing.Err() != nil }

// LetGo resets everything that a ledger keeps between claims or holds in the server.
func (l *Ledger) LetGo() {
	turns, heart := &l.Claims.turns, &l.Instances.heart
	turns.mu.Lock()
	turns.last = nil
	turns.mu.Unlock()
	heart.mu.Lock()
	l.Instances.dropHeart()
	heart.mu.Unlock()
	l.Outbox.out.letGo()
	l.Outbox.inbound.letGo()
}

// letGo gives up the leadership without waiting for the server to notice the end of the connection.
func (o *outboxPublisher) letGo() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		// it may be broken
		_, _ = o.conn.Exec(context.Background(), `select pg_advisory_unlock_all()`)
	}
	o.dropLeadership()
	o.latest, o.asked = time.Time{}, time.Time{}
}

// Hurry shortens the timeouts, before anything waits.
func (l *Ledger) Hurry(d time.Duration) {
	l.timeouts.roundTrip, l.timeouts.watch = d, d
}
