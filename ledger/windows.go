package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// dropBatch is how many windows one transaction drops.
const dropBatch = 5000

// minuteFactor is how much longer windows of a minute are kept than those of a second.
const minuteFactor = 10

// dropWindows goes up the index by age, from where the last batch ended, so that it need not
// pass again over what is gone. Who applies a routing takes back the last windows of limits; the
// rows that he has locked are passed over.
const dropWindows = `
	with gone as (
	  delete from dispatcher.limit_history where ctid = any(array(
	    select ctid from dispatcher.limit_history
	    where window_seconds = $1 and window_start >= $2 and window_start < now() - $3::interval
	    order by window_start limit $4 for update skip locked))
	  returning window_start
	)
	select count(*), coalesce(max(window_start), $2) from gone`

// DropWindows tidies up the windows that limits have left (audit.limit_windows): those of a
// second are kept for "seconds", those of a minute ten times as long, all others for "longer". It
// works in batches of a few milliseconds each and locks no row that a claim or a settlement uses.
// It returns how many windows it dropped, also with an error.
func (s *Limits) DropWindows(ctx context.Context, seconds, longer time.Duration) (dropped int64, err error) {
	lengths, err := rows(ctx, s.db, pgx.RowTo[int], distinctLengths)
	if err != nil {
		return 0, wrap("drop windows", err)
	}
	for _, length := range lengths {
		age := longer
		switch length {
		case admission.Second.Seconds():
			age = seconds
		case admission.Minute.Seconds():
			age = minuteFactor * seconds
		}
		n, err := s.dropOlder(ctx, length, age)
		dropped += n
		if err != nil {
			return dropped, wrap("drop windows", err)
		}
	}
	return dropped, nil
}

// distinctLengths jumps through the index by age.
const distinctLengths = `
	with recursive l(n) as (
	  select min(window_seconds) from dispatcher.limit_history
	  union all
	  select (select min(window_seconds) from dispatcher.limit_history where window_seconds > l.n)
	    from l where l.n is not null
	)
	select n from l where n is not null`

// dropOlder drops the windows of one length.
func (s *Limits) dropOlder(ctx context.Context, length int, age time.Duration) (dropped int64, err error) {
	from := time.Unix(0, 0)
	for n := int64(dropBatch); n == dropBatch; dropped += n {
		batch := &pgx.Batch{}
		batch.Queue("begin")
		batch.Queue(edgeSettings)
		batch.Queue(dropWindows, length, from, age, dropBatch).QueryRow(func(row pgx.Row) error { return row.Scan(&n, &from) })
		batch.Queue("commit")
		if err := s.reports.SendBatch(ctx, batch).Close(); err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}
