package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/admission"
)

// Claims begins claims, which decide for batches of messages which channel they go to: see Lock. It
// also reads what waits for a claim.
type Claims struct {
	*db
	turns turns // which tenant's rows come next when there are more due rows than a claim takes
	// pending says that the last claim found pending cancellations, so that the next one asks about
	// its messages in its first round trip.
	pending atomic.Bool
}

// Tx is one running claim: a transaction that holds the locks of what it shows. It is for one
// goroutine. It ends with Commit or Rollback, and holds one of the ledger's connections until then.
type Tx struct {
	claims   *Claims
	conn     *pgxpool.Conn // nil once the transaction has ended
	instance int64
	request  *Claim
	order    []int // positions in request.Messages, ascending by id
	day      Day   // that new messages are stored on
	// countsFrom is the value of the sequence from which that day counts its messages.
	countsFrom int64
	idTurn     int64 // the turn of the tables of ids under which new ids were stored
	asked      bool  // whether the first round trip asked for pending cancellations

	seen            Seen
	was             before            // a copy of seen from before the decisions
	missingChannels []string          // channels without a row
	missingCursors  []string          // routes without a cursor
	began           time.Time         // by the database's clock, when the claim began to wait for locks
	turnsBefore     map[string]string // the tenant that had the last turn before, by lane
	decisions       Decisions
	attempts        []int // positions in seen.Messages that get an attempt, ascending by seq
	first           []int // of these, first attempts that are stored in open_claims
	xid             int64
}

// Lock begins a claim: it stores the ids of want.Messages, locks the channels, limits and cursors,
// and picks up to want.Due due rows. That is one round trip. A second one follows when some ids
// existed already, and when cancellations are pending that the claim before did not find. The
// caller reads Seen, decides, and calls Commit. It defers Rollback.
//
// After an error nothing is left: no row, no lock, no connection.
func (s *Claims) Lock(ctx context.Context, want Claim) (*Tx, error) {
	order := ascending(want.Messages)
	insert := &insertIDs
	for {
		t, err := s.begin(ctx, &want, order, insert)
		switch {
		case errors.Is(err, errOutdated):
		case isDuplicate(err):
			insert = &insertIDsAgain
		default:
			return t, wrap("claim", err)
		}
	}
}

// errOutdated means that new ids were stored on a day that has ended, or under an old turn of the
// tables of ids. The process has read the new day and turn by then, so Lock tries again.
var errOutdated = errors.New("the day or the tables of ids have changed")

// begin is one try of Lock. insert is insertIDs or insertIDsAgain.
func (s *Claims) begin(
	ctx context.Context, want *Claim, order []int, insert *[2]string,
) (*Tx, error) {
	day, countsFrom, err := s.openDay(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tx{
		claims: s, conn: conn, instance: s.instance.Load(),
		request: want, order: order, day: day, countsFrom: countsFrom, idTurn: s.calendar.turn.Load(),
		turnsBefore: s.turns.now(),
	}
	err = t.open(ctx, insert)
	if err == nil {
		err = t.checkDuplicates(ctx)
	}
	if err == nil && !t.asked && len(t.order) > 0 && s.pending.Load() {
		err = t.askPending(ctx)
	}
	if err != nil {
		t.Rollback()
		return nil, err
	}
	t.was = remember(&t.seen)
	return t, nil
}

// Seen is what the transaction shows. The caller writes its decisions about counters into it.
func (t *Tx) Seen() *Seen { return &t.seen }

// open is the first round trip: insert, lock, pick up, and read clock and version. Due rows come
// last, because a transaction that has them locked must not wait for anything, see the lock order
// in DESIGN.md.
func (t *Tx) open(ctx context.Context, insert *[2]string) error {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	if len(t.order) > 0 {
		batch.Queue(insert[t.idTurn%2], t.idArrays()...)
		batch.Queue(selectOptedOut, recipients(t.request.Messages, t.order))
		if t.asked = t.claims.pending.Load(); t.asked {
			batch.Queue(selectPending, t.ids())
		}
	}
	if len(t.request.Channels) > 0 {
		batch.Queue(lockChannels, t.request.Channels)
		batch.Queue(selectFreed, t.request.Channels)
	}
	t.queueLimits(batch)
	if len(t.request.Cursors) > 0 {
		batch.Queue(lockCursors, t.request.Cursors)
	}
	if t.request.Due > 0 {
		// A nil slice would be null, and no row would match.
		batch.Queue(selectDue, t.request.Due, append([]int64{}, t.request.Except...),
			append([]string{}, t.request.Lanes...), t.turnsBefore)
	}
	batch.Queue(readPresent, t.instance)
	results := t.conn.SendBatch(ctx, batch)
	err := t.readOpening(results)
	return errors.Join(err, closing(results, err))
}

// queueLimits queues the statements that lock the limits of the channels and scopes, in the order
// of their keys.
func (t *Tx) queueLimits(batch *pgx.Batch) {
	switch {
	case len(t.request.Scopes) > 0:
		if t.request.EachTenant {
			batch.Queue(makeTenantLimits, tenantArrays(t.request.Scopes)...)
		}
		batch.Queue(lockScopes, scopeArrays(t.request.Channels, t.request.Scopes)...)
	case len(t.request.Channels) > 0:
		batch.Queue(lockLimits, t.request.Channels)
	}
}

// scopeArrays are the parameters of lockScopes.
func scopeArrays(names []string, scopes []ScopeRef) []any {
	channel, scope := make([]string, 0, len(names)+len(scopes)),
		make([]string, 0, len(names)+len(scopes))
	for _, name := range names {
		channel, scope = append(channel, name), append(scope, admission.Scope{}.String())
	}
	for i := range scopes {
		channel, scope = append(channel, scopes[i].Channel), append(scope, scopes[i].Scope.String())
	}
	return []any{channel, scope}
}

// closing closes a batch. After an earlier error it returns nil, because Close would repeat that
// error.
func closing(results pgx.BatchResults, earlier error) error {
	if err := results.Close(); earlier == nil {
		return err
	}
	return nil
}

// readOpening reads the results of open in their order.
func (t *Tx) readOpening(results pgx.BatchResults) error {
	if _, err := results.Exec(); err != nil {
		return err
	}
	t.seen.Messages = make([]Message, len(t.request.Messages),
		len(t.request.Messages)+max(t.request.Due, 0))
	copy(t.seen.Messages, t.request.Messages)
	t.seen.Intakes = make([]Intake, len(t.seen.Messages), cap(t.seen.Messages))
	if len(t.order) > 0 {
		if err := t.readInserted(results); err != nil {
			return err
		}
		if err := t.readOptedOut(results); err != nil {
			return err
		}
		if t.asked {
			if err := t.readPending(results.Query()); err != nil {
				return err
			}
		}
	}
	if err := t.readChannels(results); err != nil {
		return err
	}
	if len(t.request.Cursors) > 0 {
		if err := t.readCursors(results); err != nil {
			return err
		}
	}
	if t.request.Due > 0 {
		if err := t.readDue(results); err != nil {
			return err
		}
	}
	return t.readPresent(results)
}

// readInserted marks the returned ids as Fresh and all others as Duplicate. PostgreSQL inserts and
// returns the rows of a function scan in their order, and the ids are given in t.order.
func (t *Tx) readInserted(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := range t.seen.Intakes {
		t.seen.Intakes[i] = Duplicate
	}
	next := 0
	var seq int64
	var id pgtype.DriverBytes // not copied
	_, err = pgx.ForEachRow(rows, []any{&seq, &id}, func() error {
		for next < len(t.order) && t.seen.Messages[t.order[next]].ID != string(id) {
			next++
		}
		if next == len(t.order) {
			return errors.New("the database returned new rows in another order than they were sent")
		}
		at := t.order[next]
		t.seen.Messages[at].Seq, t.seen.Intakes[at] = seq, Fresh
		next++
		return nil
	})
	return err
}

func (t *Tx) readOptedOut(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	var nr int64
	_, err = pgx.ForEachRow(rows, []any{&nr}, func() error {
		t.markOptedOut(t.order[nr-1])
		return nil
	})
	return err
}

func (t *Tx) readDue(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	var r dueRow
	targets := r.targets()
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if r.optedOut {
			t.markOptedOut(len(t.seen.Messages))
		}
		t.seen.Messages = append(t.seen.Messages, r.message())
		t.seen.Intakes = append(t.seen.Intakes, Due)
	}
	return rows.Err()
}

// readChannels reads the locked channels and limits.
func (t *Tx) readChannels(results pgx.BatchResults) error {
	if len(t.request.Channels) > 0 {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		var row channelRow
		if t.seen.Channels, t.missingChannels, err = collectChannels(rows, t.request.Channels,
			&row); err != nil {
			return err
		}
		t.began = row.began
		if rows, err = results.Query(); err != nil {
			return err
		}
		if err := subtractFreed(rows, t.seen.Channels); err != nil {
			return err
		}
	}
	if len(t.request.Channels) == 0 && len(t.request.Scopes) == 0 {
		return nil
	}
	if len(t.request.Scopes) > 0 {
		t.seen.Scoped = make([]ScopeState, len(t.request.Scopes))
		for i, ref := range t.request.Scopes {
			t.seen.Scoped[i].ScopeRef = ref
		}
	}
	if t.request.EachTenant && len(t.request.Scopes) > 0 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	return collectLimits(rows, t.seen.Channels, t.seen.Scoped)
}

func (t *Tx) readCursors(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	t.seen.Cursors, t.missingCursors, err = collectCursors(rows, t.request.Cursors)
	return err
}

// readPresent reads clock and version. It returns an error when a recovery would not find the
// attempts that this instance is about to claim.
func (t *Tx) readPresent(results pgx.BatchResults) error {
	var received time.Time
	var lastSeen pgtype.Timestamptz
	var turn int64
	var pending bool
	if err := results.QueryRow().Scan(&t.seen.Now, &received, &t.xid, &t.seen.Version,
		&lastSeen, &turn, &pending); err != nil {
		return err
	}
	t.claims.pending.Store(pending)
	t.claims.calendar.saw(t.seen.Now)
	t.claims.calendar.turn.Store(turn)
	if len(t.order) > 0 && (turn != t.idTurn || t.seen.Now.Sub(t.day.end()) > disorder/2) {
		return errOutdated
	}
	t.seen.Now = t.seen.Now.UTC()
	if !t.began.IsZero() {
		t.seen.LockWait = max(t.seen.Now.Sub(t.began), 0)
	}
	for i := range t.request.Messages {
		if t.seen.Intakes[i] == Fresh {
			t.seen.Messages[i].ReceivedAt = received.UTC()
		}
	}
	switch {
	case !lastSeen.Valid:
		return ErrNotRegistered
	case t.seen.Now.Sub(lastSeen.Time) > maxSilence:
		return ErrSilent
	}
	return nil
}

// checkDuplicates compares the content of messages whose ids existed already, and marks those whose
// content differs as Conflict. When the stored payload was dropped, its content is not known, and
// the message counts as a duplicate.
func (t *Tx) checkDuplicates(ctx context.Context) error {
	wanted := map[string]int{}
	for i := range t.request.Messages {
		if t.seen.Intakes[i] == Duplicate {
			wanted[t.request.Messages[i].ID] = i
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	rows, err := t.conn.Query(ctx, selectDigests, slices.Collect(maps.Keys(wanted)))
	if err != nil {
		return err
	}
	var id string
	var digest int64
	_, err = pgx.ForEachRow(rows, []any{&id, &digest}, func() error {
		if i := wanted[id]; t.request.Messages[i].Digest != digest {
			t.seen.Intakes[i] = Conflict
		}
		return nil
	})
	return err
}

// markOptedOut records that the recipient of the message at a position has opted out.
func (t *Tx) markOptedOut(at int) {
	for len(t.seen.OptedOut) <= at {
		t.seen.OptedOut = append(t.seen.OptedOut, false)
	}
	t.seen.OptedOut[at] = true
}

// IsOptedOut reports whether the recipient of the message at a position in Messages has opted out
// of what its tenant sends.
func (s *Seen) IsOptedOut(at int) bool { return at < len(s.OptedOut) && s.OptedOut[at] }
