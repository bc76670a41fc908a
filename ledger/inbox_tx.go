package ledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// inboundTx is one transaction of Inbox.
type inboundTx struct {
	request []Inbound
	after   time.Duration // of RecordIncomplete, as limit
	limit   int
	react   func(*Subscribed) Reaction

	began   time.Time // by this machine's clock
	marks   marks
	fresh   map[marked]bool // the marks that had not been stored before
	waiting []piece         // the rows of the groups concerned

	used    []int64  // seqs of parts whose message is complete or given up, to delete
	keys    []string // of the notices
	values  [][]byte
	changes map[int64]entry // by recipient: the change that counts
	result  InboxResult
}

// run runs a transaction; open is its first round trip.
func (s *Inbox) run(
	ctx context.Context, open func(context.Context, *pgx.Conn) error, t *inboundTx,
) error {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t.began = time.Now()
	if err = open(ctx, conn.Conn()); err == nil {
		err = t.write(ctx, conn.Conn(), t.decide())
	}
	if err != nil {
		rollback(ctx, conn)
	}
	return err
}

// open stores the marks, and reads the waiting parts of the same groups.
func (t *inboundTx) open(ctx context.Context, conn *pgx.Conn) error {
	t.marks, t.fresh = newMarks(t.request), map[marked]bool{}
	parts := partArrays(t.request)
	batch := &pgx.Batch{}
	batch.Queue("begin")
	if parts != nil {
		// The locks come before the marks, because claimMarks may wait for another write.
		batch.Queue(shareParts, joining)
		batch.Queue(lockGroups, joiningGroup, groupLocks(t.request))
	}
	batch.Queue(claimMarks, t.marks.arguments()...).Query(t.readMarks)
	if parts != nil {
		batch.Queue(selectParts, parts...).Query(t.readParts)
	}
	return conn.SendBatch(ctx, batch).Close()
}

// openOverdue reads the groups with overdue parts.
func (t *inboundTx) openOverdue(ctx context.Context, conn *pgx.Conn) error {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(lockAllParts, joining)
	batch.Queue(selectOverdue, t.after, t.limit).Query(t.readParts)
	return conn.SendBatch(ctx, batch).Close()
}

func (t *inboundTx) readMarks(rows pgx.Rows) error {
	var channel string
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&channel, &hash}, func() error {
		if len(hash) != len(mark{}) {
			return errors.New("the database returned a mark of another length")
		}
		t.fresh[marked{channel, mark(hash)}] = true
		return nil
	})
	return err
}

func (t *inboundTx) readParts(rows pgx.Rows) error {
	var p piece
	var number int32
	_, err := pgx.ForEachRow(rows, []any{
		&p.seq, &p.ID, &p.Channel, &p.From, &p.To, &number,
		&p.Parts, &p.Part, &p.Text, &p.At, &p.overdue,
	}, func() error {
		p.Group = uint16(number)
		t.waiting = append(t.waiting, p)
		return nil
	})
	return err
}

// decide joins parts to messages, and returns the new parts that go on waiting.
func (t *inboundTx) decide() (rest []piece) {
	r := newReassembler()
	for _, p := range t.waiting {
		if whole := r.add(p); whole != nil {
			t.take(whole)
		}
	}
	for _, parts := range r.overdue() {
		t.take(parts)
	}
	for i := range t.request {
		in, at := &t.request[i], t.marks.each[i]
		switch {
		case !t.fresh[at] || t.marks.first[at] != i:
			t.result.Repeated++
		case !in.split():
			t.result.Whole++
			t.hear(unsplit(in))
		default:
			if whole := r.add(piece{Inbound: *in}); whole != nil {
				t.take(whole)
			}
		}
	}
	rest = r.rest()
	t.result.Waiting = len(rest)
	return rest
}

// take handles the message of some parts, whose rows are deleted.
func (t *inboundTx) take(parts []piece) {
	s := joined(parts)
	if len(s.Missing) > 0 {
		t.result.Abandoned++
	} else {
		t.result.Whole++
	}
	for i := range parts {
		if parts[i].seq > 0 {
			t.used = append(t.used, parts[i].seq)
		}
	}
	t.hear(s)
}

// hear calls react for a message and notes the result.
func (t *inboundTx) hear(s *Subscribed) {
	r := t.react(s)
	t.keys, t.values = append(t.keys, r.Key), append(t.values, notNull(r.Value))
	if r.Change == NoChange {
		return
	}
	if t.changes == nil {
		t.changes = map[int64]entry{}
	}
	recipient, next := Recipient(r.Tenant, s.From), newEntry(s, &r)
	if was, ok := t.changes[recipient]; !ok || next.counts(&was) {
		t.changes[recipient] = next
	}
}

// write is the second round trip.
func (t *inboundTx) write(ctx context.Context, conn *pgx.Conn, rest []piece) error {
	batch := &pgx.Batch{}
	if len(rest) > 0 {
		batch.Queue(insertParts, pieceArrays(rest))
	}
	if len(t.used) > 0 {
		batch.Queue(deleteParts, t.used)
	}
	t.queueChanges(batch)
	if len(t.keys) > 0 {
		batch.Queue(insertInboundNotices, t.keys, t.values)
	}
	var commit commitTag
	commit.queue(batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return commit.err()
}

// groupLocks are the locks of the groups of parts in a request, ascending.
func groupLocks(in []Inbound) (locks []int32) {
	for i := range in {
		if in[i].split() {
			g := in[i].group()
			locks = append(locks, g.lock())
		}
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

// partArrays are the parameters of selectParts; nil when the request has no parts.
func partArrays(in []Inbound) []any {
	var channel, from, to []string
	var number []int32
	var parts []int16
	for i := range in {
		if p := &in[i]; p.split() {
			channel, from, to = append(channel, p.Channel), append(from, p.From), append(to, p.To)
			number, parts = append(number, int32(p.Group)), append(parts, int16(p.Parts))
		}
	}
	if channel == nil {
		return nil
	}
	return []any{channel, from, to, number, parts}
}

// pieceArrays are the parameters of insertParts.
func pieceArrays(rest []piece) pgx.StrictNamedArgs {
	n := len(rest)
	id, channel, text := make([]string, n), make([]string, n), make([]string, n)
	from, to := make([]string, n), make([]string, n)
	number, parts, part := make([]int32, n), make([]int16, n), make([]int16, n)
	at := make([]pgtype.Timestamptz, n)
	for i := range rest {
		p := &rest[i]
		id[i], channel[i], from[i], to[i], text[i] = p.ID, p.Channel, p.From, p.To, p.Text
		number[i], parts[i], part[i] = int32(p.Group), int16(p.Parts), int16(p.Part)
		at[i] = instant(cmp.Or(p.At, time.Now()))
	}
	return pgx.StrictNamedArgs{
		"ids": id, "channels": channel, "senders": from, "recipients": to,
		"groups": number, "parts": parts, "numbers": part, "bodies": text, "received_ats": at,
	}
}

// entry is a change of an opt-out list.
type entry struct {
	what            Change
	tenant, channel string
	heardAt, sentAt time.Time // sentAt is zero when it is not known
}

func newEntry(s *Subscribed, r *Reaction) entry {
	return entry{
		what: r.Change, tenant: r.Tenant, channel: s.Channel,
		heardAt: cmp.Or(s.At, time.Now()), sentAt: s.SentAt,
	}
}

// counts reports whether this change replaces an earlier one of the same recipient in the batch. Of
// two changes of the same kind, the one that arrived last counts. An OptOut always replaces an
// OptIn before it. An OptIn replaces an OptOut before it unless it is older, as in relist.
func (e *entry) counts(was *entry) bool {
	if e.what != was.what && e.what == OptOut {
		return true
	}
	if e.what == OptIn && was.what == OptOut && !e.sentAt.IsZero() {
		if sameClock := e.channel == was.channel && !was.sentAt.IsZero(); sameClock &&
			!e.sentAt.Equal(was.sentAt) {
			return e.sentAt.After(was.sentAt)
		} else if !sameClock && e.sentAt.Before(was.heardAt) {
			return false
		}
	}
	return !e.heardAt.Before(was.heardAt)
}

// queueChanges puts senders on opt-out lists, and then changes the entries of those who were on
// them.
func (t *inboundTx) queueChanges(batch *pgx.Batch) {
	if len(t.changes) > 0 {
		batch.Queue(lockLists, listsLock)
	}
	if out := t.changed(OptOut); len(out.recipients) > 0 {
		batch.Queue(putOn, pgx.StrictNamedArgs{
			"tenants": out.tenants, "recipients": out.recipients, "channels": out.channels,
			"source": BySubscriber, "author": "", "reason": "",
			"agos": out.agos, "sent_ats": out.sent,
		}).Exec(func(tag pgconn.CommandTag) error {
			t.result.OptedOut = int(tag.RowsAffected())
			return nil
		})
	}
	if all := t.changed(OptOut, OptIn); len(all.recipients) > 0 {
		batch.Queue(relist, pgx.StrictNamedArgs{
			"recipients": all.recipients, "channels": all.channels,
			"source": BySubscriber, "author": "", "reason": "",
			"agos": all.agos, "sent_ats": all.sent, "ends": all.ends, "end_all": false,
		}).QueryRow(func(row pgx.Row) error { return row.Scan(&t.result.OptedIn) })
	}
}

// listArrays are parameters of putOn and relist.
type listArrays struct {
	tenants, channels []string
	recipients        []int64
	// microseconds from the arrival of the message to the beginning of the transaction; times would
	// not do, because the clocks of machines differ
	agos []int64
	sent []pgtype.Timestamptz
	ends []bool
}

// changed are the changes of the given kinds, ascending by recipient.
func (t *inboundTx) changed(kinds ...Change) (a listArrays) {
	for _, recipient := range slices.Sorted(maps.Keys(t.changes)) {
		c := t.changes[recipient]
		if !slices.Contains(kinds, c.what) {
			continue
		}
		a.recipients = append(a.recipients, recipient)
		a.tenants, a.channels = append(a.tenants, c.tenant), append(a.channels, c.channel)
		a.agos = append(a.agos, max(t.began.Sub(c.heardAt), 0).Microseconds())
		a.sent, a.ends = append(a.sent, instant(c.sentAt)), append(a.ends, c.what == OptIn)
	}
	return a
}
