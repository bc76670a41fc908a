package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/admission"
)

// Claim runs one transaction: it stores c.Messages, picks up to c.Due due rows, locks the
// channels and cursors, shows all that to decide and writes the decisions down. When it returns
// nil, everything is durable. When it returns an error, nothing is: no row, no slot.
//
// It takes two round trips, and a third when ids were there already. An error of
// decide comes back wrapped. If the connection breaks while the commit of attempts is
// under way, Claim stays until it has found out what became of it, even after ctx has
// ended; only Close cuts that short. Attempts that the caller then does not know of
// belong to this instance and are recovered after its end.
func (l *Ledger) Claim(ctx context.Context, c Claim, decide Decide) error {
	if len(c.Messages) == 0 && c.Due <= 0 {
		return nil
	}
	t, lost, err := l.transact(ctx, &c, decide)
	if lost {
		err = l.commitOutcome(ctx, t, err)
	}
	return wrap("claim", err)
}

// transact runs a claim to its end, see finish, and gives its connection back: before commitOutcome asks for one, since when the server
// went away all of them hang in claims, and also when decide panics, since Close waits for each. One in
// mid-transaction is cut by the pool, so the locks go with it.
func (l *Ledger) transact(ctx context.Context, c *Claim, decide Decide) (t *claimTx, lost bool, err error) {
	conn, err := l.hot.Acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release()
	t = &claimTx{conn: conn, instance: l.instance.Load(), request: c, order: ascending(c.Messages), behind: l.turns.now()}
	lost, err = t.finish(ctx, decide)
	t.passTurn(&l.turns)
	return t, lost, err
}

// claimTx is one claim under way.
type claimTx struct {
	conn     *pgxpool.Conn
	instance int64
	request  *Claim
	order    []int // positions in request.Messages, ascending by id

	seen      Seen
	was       before            // what was shown, as it was before decide
	missing   []string          // channels without a row
	unturned  []string          // routes without a cursor
	began     time.Time         // by the database's clock, when the claim began to wait for locks
	behind    map[string]string // the tenant that had the last turn before, by lane
	decisions Decisions
	attempts  []int // positions in seen.Messages that get an attempt, ascending by seq
	xid       int64
}

// finish runs the transaction to its end. lost means that the connection broke while it
// was committed, so that nobody knows yet what became of it.
func (t *claimTx) finish(ctx context.Context, decide Decide) (lost bool, err error) {
	if err := t.run(ctx, decide); err != nil {
		t.rollback(ctx)
		return false, err
	}
	tag, err := t.write(ctx)
	switch {
	case err == nil && tag == "COMMIT":
		return false, nil
	case err == nil:
		// PostgreSQL answers COMMIT with ROLLBACK when the transaction had failed.
		return false, fmt.Errorf("commit was answered with %s", tag)
	case certainlyUndone(err):
		t.rollback(ctx)
		return false, err
	}
	return true, err
}

// run is everything before the second round trip.
func (t *claimTx) run(ctx context.Context, decide Decide) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	if err := t.checkDuplicates(ctx); err != nil {
		return err
	}
	t.was = remember(&t.seen)
	var err error
	if t.decisions, err = decide(&t.seen); err != nil {
		return err
	}
	if len(t.missing) > 0 {
		return &MissingChannelsError{Names: t.missing}
	}
	if len(t.unturned) > 0 {
		return &MissingCursorsError{Routes: t.unturned}
	}
	return check(&t.seen, &t.was, &t.decisions)
}

// open is the first round trip: insert, pick up, lock, and read clock and version.
func (t *claimTx) open(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	if len(t.order) > 0 {
		batch.Queue(insertMessages, messageArrays(t.request.Messages, t.order)...)
	}
	if t.request.Due > 0 {
		// Null would leave out all.
		batch.Queue(selectDue, t.request.Due, append([]int64{}, t.request.Except...), append([]string{}, t.request.Lanes...), t.behind)
	}
	if len(t.request.Channels) > 0 {
		batch.Queue(lockChannels, t.request.Channels)
	}
	t.queueLimits(batch)
	if len(t.request.Cursors) > 0 {
		batch.Queue(lockCursors, t.request.Cursors)
	}
	batch.Queue(readPresent, t.instance)
	results := t.conn.SendBatch(ctx, batch)
	err := t.readOpening(results)
	return errors.Join(err, closing(results, err))
}

// queueLimits asks for the limits of the channels and scopes, all in the order of their keys.
func (t *claimTx) queueLimits(batch *pgx.Batch) {
	switch {
	case len(t.request.Scopes) > 0:
		batch.Queue(lockScopes, scopeArrays(t.request.Channels, t.request.Scopes)...)
	case len(t.request.Channels) > 0:
		batch.Queue(lockLimits, t.request.Channels)
	}
}

// scopeArrays are the parameters of lockScopes.
func scopeArrays(names []string, scopes []ScopeRef) []any {
	channel, scope := make([]string, 0, len(names)+len(scopes)), make([]string, 0, len(names)+len(scopes))
	for _, name := range names {
		channel, scope = append(channel, name), append(scope, admission.Scope{}.String())
	}
	for i := range scopes {
		channel, scope = append(channel, scopes[i].Channel), append(scope, scopes[i].Scope.String())
	}
	return []any{channel, scope}
}

// closing ends a batch; after an error its own would only repeat it.
func closing(results pgx.BatchResults, earlier error) error {
	if err := results.Close(); earlier == nil {
		return err
	}
	return nil
}

// readOpening reads the answers to open in their order.
func (t *claimTx) readOpening(results pgx.BatchResults) error {
	if _, err := results.Exec(); err != nil {
		return err
	}
	t.seen.Messages = make([]Message, len(t.request.Messages), len(t.request.Messages)+max(t.request.Due, 0))
	copy(t.seen.Messages, t.request.Messages)
	t.seen.Intakes = make([]Intake, len(t.seen.Messages), cap(t.seen.Messages))
	if len(t.order) > 0 {
		if err := t.readInserted(results); err != nil {
			return err
		}
	}
	if t.request.Due > 0 {
		if err := t.readDue(results); err != nil {
			return err
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
	return t.readPresent(results)
}

// readInserted walks the returned ids beside the ascending ones. PostgreSQL inserts
// and returns the rows of a function scan in their order; an id that is passed over
// was there already.
func (t *claimTx) readInserted(results pgx.BatchResults) error {
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
	var id string
	var optedOut bool
	_, err = pgx.ForEachRow(rows, []any{&seq, &id, &optedOut}, func() error {
		for next < len(t.order) && t.seen.Messages[t.order[next]].ID != id {
			next++
		}
		if next == len(t.order) {
			return errors.New("the database returned new rows in another order than they were sent")
		}
		at := t.order[next]
		t.seen.Messages[at].Seq, t.seen.Intakes[at] = seq, Fresh
		if optedOut {
			t.bar(at)
		}
		next++
		return nil
	})
	return err
}

func (t *claimTx) readDue(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r dueRow
		if err := rows.Scan(r.targets()...); err != nil {
			return err
		}
		if r.optedOut {
			t.bar(len(t.seen.Messages))
		}
		t.seen.Messages = append(t.seen.Messages, r.message())
		t.seen.Intakes = append(t.seen.Intakes, Due)
	}
	return rows.Err()
}

// readChannels reads what was locked of channels and limits.
func (t *claimTx) readChannels(results pgx.BatchResults) error {
	if len(t.request.Channels) > 0 {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		var row channelRow
		if t.seen.Channels, t.missing, err = collectChannels(rows, t.request.Channels, &row); err != nil {
			return err
		}
		t.began = row.began
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
	rows, err := results.Query()
	if err != nil {
		return err
	}
	return collectLimits(rows, t.seen.Channels, t.seen.Scoped)
}

func (t *claimTx) readCursors(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	t.seen.Cursors, t.unturned, err = collectCursors(rows, t.request.Cursors)
	return err
}

// readPresent reads clock and version, and checks that a recovery would find what
// this instance is about to claim.
func (t *claimTx) readPresent(results pgx.BatchResults) error {
	var received time.Time
	var lastSeen pgtype.Timestamptz
	if err := results.QueryRow().Scan(&t.seen.Now, &received, &t.xid, &t.seen.Version, &lastSeen); err != nil {
		return err
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

// checkDuplicates asks for the content behind ids that were there already, if any.
func (t *claimTx) checkDuplicates(ctx context.Context) error {
	wanted := map[string]int{}
	for i := range t.request.Messages {
		if t.seen.Intakes[i] == Duplicate {
			wanted[t.request.Messages[i].ID] = i
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	ids := make([]string, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	rows, err := t.conn.Query(ctx, selectDigests, ids)
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

// write is the second round trip. It returns the command tag that commit was answered with.
func (t *claimTx) write(ctx context.Context) (tag string, err error) {
	batch := &pgx.Batch{}
	attempts, changes := split(&t.seen, t.decisions.Each, len(t.request.Messages))
	t.attempts = attempts
	if len(attempts) > 0 {
		batch.Queue(insertAttempts, attemptArrays(&t.seen, t.decisions.Each, attempts, t.seen.Now, t.instance)...)
	}
	if len(changes) > 0 {
		batch.Queue(updateMessages, changeArrays(&t.seen, t.decisions.Each, changes)...)
	}
	if seqs, details := t.details(); len(seqs) > 0 {
		batch.Queue(updateDetails, seqs, details)
	}
	if seqs, numbers := t.freeTickets(); len(seqs) > 0 {
		batch.Queue(freeAttempts, seqs, numbers)
	}
	d := differ(&t.was, &t.seen)
	if len(d.changed) > 0 {
		batch.Queue(updateLimits, counterArrays(d.changed)...)
	}
	if len(d.left) > 0 {
		batch.Queue(insertHistory, counterArrays(d.left)...)
	}
	if len(d.channels) > 0 {
		batch.Queue(updateChannels, channelArrays(d.channels)...)
	}
	if cursors := moved(t.was.turns, t.seen.Cursors); len(cursors) > 0 {
		batch.Queue(updateCursors, cursorArrays(cursors)...)
	}
	for _, box := range pack(t.decisions.Notices) {
		batch.Queue(insertOutbox, box.kind, box.keys, box.values, box.headers)
	}
	if slices.Contains(t.seen.Intakes, Duplicate) {
		batch.Queue(replicationBarrier) // the caller will rely on it that they are stored
	}
	batch.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		tag = ct.String()
		return nil
	})
	err = t.conn.SendBatch(ctx, batch).Close() // before what it reads is returned
	return tag, err
}

// details are why new messages are dead.
func (t *claimTx) details() (seqs []int64, details []string) {
	for i := range t.request.Messages {
		if m := &t.seen.Messages[i]; m.Detail != "" && t.seen.Intakes[i] == Fresh {
			seqs, details = append(seqs, m.Seq), append(details, storable(m.Detail))
		}
	}
	return seqs, details
}

// rollbackTimeout bounds a rollback; after it the connection is cut, which does the same.
const rollbackTimeout = 2 * time.Second

func (t *claimTx) rollback(ctx context.Context) { rollback(ctx, t.conn) }

// rollback ends the transaction even when ctx has ended, so that no lock outlives its holder.
func rollback(ctx context.Context, pooled *pgxpool.Conn) {
	conn := pooled.Conn()
	if conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		closeConn(conn)
	}
}
