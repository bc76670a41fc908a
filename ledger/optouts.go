package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// OptOuts stores which recipients want no more messages of a tenant.
type OptOuts struct{ *db }

// OptOutSource says what put a recipient on an opt-out list, or took the recipient off.
type OptOutSource string

// Sources of opt-outs: the words of audit.opt_outs.
const (
	BySubscriber OptOutSource = "keyword" // the subscriber sent a word such as STOP
	ByCommand    OptOutSource = "command"
	ByAPI        OptOutSource = "api"     // the author was authenticated
	ByConsole    OptOutSource = "console" // as with api
	ByImport     OptOutSource = "import"  // of another system's list; an import only adds
)

// Listing says who changes an opt-out list, and why.
type Listing struct {
	Tenant         string
	Source         OptOutSource
	Author, Reason string
}

// Add puts the recipients with the given numbers on the opt-out list of a tenant, in one
// transaction, and returns how many were not on it. A claim that begins after it sees them. A START
// that arrived before it does not take them off.
func (s *OptOuts) Add(ctx context.Context, by Listing, numbers []string) (added int64, err error) {
	recipients := by.recipients(numbers)
	batch := &pgx.Batch{}
	batch.Queue(lockLists, listsLock)
	batch.Queue(putOn, pgx.StrictNamedArgs{
		"tenants": []string{by.Tenant}, "recipients": recipients, "channels": nil,
		"source": by.Source, "author": by.Author, "reason": by.Reason,
		"agos": nil, "sent_ats": nil,
	}).Exec(func(tag pgconn.CommandTag) error {
		added = tag.RowsAffected()
		return nil
	})
	batch.Queue(relist, by.relisting(recipients, false))
	err = s.reports.SendBatch(ctx, batch).Close()
	return added, wrap("add to the opt-out list", err)
}

// Remove takes the recipients with the given numbers off the opt-out list of a tenant, and returns
// how many were on it.
func (s *OptOuts) Remove(
	ctx context.Context, by Listing, numbers []string,
) (removed int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(lockLists, listsLock)
	batch.Queue(relist, by.relisting(by.recipients(numbers), true)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&removed) })
	err = s.reports.SendBatch(ctx, batch).Close()
	return removed, wrap("take off the opt-out list", err)
}

// relisting are the parameters of relist for a change by a person. end takes the recipients off.
func (l *Listing) relisting(recipients []int64, end bool) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{
		"recipients": recipients, "channels": nil,
		"source": l.Source, "author": l.Author, "reason": l.Reason,
		"agos": nil, "sent_ats": nil, "ends": nil, "end_all": end,
	}
}

// recipients are the recipients with the given numbers, ascending, each once.
func (l *Listing) recipients(numbers []string) []int64 {
	out := make([]int64, len(numbers))
	for i, number := range numbers {
		out[i] = Recipient(l.Tenant, number)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OptOutEntry is one opt-out of a recipient.
type OptOutEntry struct {
	Tenant         string
	Since          time.Time
	Source         OptOutSource
	Channel        string // on which the keyword arrived
	Author, Reason string
	// Login and EndedLogin are logins at the database; empty where they were not recorded.
	Login, EndedLogin string
	// Until is when the recipient was taken off the list; zero for a recipient who is on it. The
	// fields after it are empty then.
	Until                    time.Time
	EndedBy                  OptOutSource
	EndedChannel             string
	EndedAuthor, EndedReason string
}

// Of returns the opt-outs of the recipient with a number from messages of a tenant, latest first.
func (s *OptOuts) Of(ctx context.Context, tenant, number string) ([]OptOutEntry, error) {
	entries, err := rows(ctx, s.db, scanOptOut, `
		select tenant, since, source, channel, author, reason, until, coalesce(ended_by, ''),
		  ended_channel, ended_author, ended_reason, coalesce(login, ''), coalesce(ended_login, '')
		from dispatcher.opt_outs where recipient = $1 and tenant = $2
		order by seq desc`, Recipient(tenant, number), tenant)
	return entries, wrap("read opt-outs", err)
}

func scanOptOut(row pgx.CollectableRow) (e OptOutEntry, err error) {
	var until pgtype.Timestamptz
	err = row.Scan(&e.Tenant, &e.Since, &e.Source, &e.Channel, &e.Author, &e.Reason, &until,
		&e.EndedBy, &e.EndedChannel, &e.EndedAuthor, &e.EndedReason, &e.Login,
		&e.EndedLogin)
	e.Since, e.Until = e.Since.UTC(), moment(until)
	return e, err
}

// OptOutCount counts the opt-outs of a tenant by source and channel.
type OptOutCount struct {
	Tenant  string
	Source  OptOutSource
	Channel string
	// Current are on the list; Ended were taken off it.
	Current, Ended int64
	First, Last    time.Time // when the first and the last of all of them were added
}

// Count counts the opt-outs of one tenant, or of all when tenant is nil.
func (s *OptOuts) Count(ctx context.Context, tenant *string) ([]OptOutCount, error) {
	counts, err := rows(ctx, s.db, pgx.RowToStructByPos[OptOutCount], `
		select tenant, source, channel, count(*) filter (where until is null), count(until),
		  min(since), max(since)
		from dispatcher.opt_outs where $1::text is null or tenant = $1 group by 1, 2, 3`, tenant)
	slices.SortFunc(counts, func(a, b OptOutCount) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Channel, b.Channel))
	})
	for i := range counts {
		counts[i].First, counts[i].Last = counts[i].First.UTC(), counts[i].Last.UTC()
	}
	return counts, wrap("count opt-outs", err)
}
