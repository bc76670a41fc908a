package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// entry is a change of an opt-out list.
type entry struct {
	what            Change
	tenant, channel string
	heardAt, sentAt time.Time // sentAt is zero when it is not known
}

func newEntry(m *Subscribed, r *Reaction) entry {
	return entry{what: r.Change, tenant: r.Tenant, channel: m.Channel, heardAt: cmp.Or(m.At, time.Now()), sentAt: m.SentAt}
}

// counts reports whether a change that is booked after another one of the same recipient counts
// instead of that. Of two of a kind it is the one that arrived last; of two kinds the last, except
// that an older OptIn never ends a newer OptOut, as relist has it.
func (e *entry) counts(was *entry) bool {
	if e.what != was.what && e.what == OptOut {
		return true
	}
	if e.what == OptIn && was.what == OptOut && !e.sentAt.IsZero() {
		if sameClock := e.channel == was.channel && !was.sentAt.IsZero(); sameClock && !e.sentAt.Equal(was.sentAt) {
			return e.sentAt.After(was.sentAt)
		} else if !sameClock && e.sentAt.Before(was.heardAt) {
			return false
		}
	}
	return !e.heardAt.Before(was.heardAt)
}

// queueChanges puts senders on opt-out lists, and then changes the entries of those who are on
// them.
func (t *inboundTx) queueChanges(batch *pgx.Batch) {
	if out := t.changed(OptOut); len(out.recipients) > 0 {
		batch.Queue(putOn, out.tenants, out.recipients, BySubscriber, out.channels, "", "", out.agos, out.sent).Exec(func(tag pgconn.CommandTag) error {
			t.booked.OptedOut = int(tag.RowsAffected())
			return nil
		})
	}
	if all := t.changed(OptOut, OptIn); len(all.recipients) > 0 {
		batch.Queue(relist, all.recipients, BySubscriber, all.channels, "", "", all.agos, all.sent, all.ends, false).
			QueryRow(func(row pgx.Row) error { return row.Scan(&t.booked.OptedIn) })
	}
}

// listArrays are parameters of putOn and relist.
type listArrays struct {
	tenants, channels []string
	recipients        []int64
	agos              []int64 // microseconds from its arrival to the beginning of the transaction: the clocks of machines differ
	sent              []pgtype.Timestamptz
	ends              []bool
}

// changed are the changes of some kinds, ascending by recipient.
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
