package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// TestAGrowingDayThatNobodyAnalysedCostsNoMore: the statements of claim, settlement and receipt are
// planned while the day is empty, and then it grows to many messages without statistics. The pages
// that they read are counted.
func TestAGrowingDayThatNobodyAnalysedCostsNoMore(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url, MaxConns: 1}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	execute(t, db, `do $$ declare p regclass; begin
		for p in select relid from pg_partition_tree('dispatcher.messages') where isleaf union all
		  select relid from pg_partition_tree('dispatcher.attempts') where isleaf union all
		  select relid from pg_partition_tree('dispatcher.payloads') where isleaf union all
		  select 'dispatcher.receipts'::regclass loop
		  execute format('alter table %s set (autovacuum_enabled = off)', p);
		end loop; end $$`)
	const n = 200
	round := func(name string) {
		s := accepted(claimAll(t, l, batch(name, n), "a").Messages)
		receipts := make([]ledger.Receipt, n)
		for i := range s {
			s[i].Await = time.Hour
			receipts[i] = receipt(s[i].Reference, provider.Delivered)
		}
		settleAll(t, l, s)
		if got := receive(t, l, receipts...); got.Matched != n {
			t.Errorf("%+v", got)
		}
	}
	for i := range 3 {
		round(fmt.Sprint("first", i))
	}
	small := pages(t, l, db, func() { round("small") })
	rows := tier.Size(20_000, 1_000_000)
	for _, sql := range []string{
		`insert into dispatcher.messages (seq, id, lane, state, attempts)
		 select dispatcher.first_of(dispatcher.day_at(now())) + 1000000 + i, 'old-' || i, 'bulk',
		   'sending', 1 from generate_series(1, $1::int) i`,
		`insert into dispatcher.payloads (seq, digest, envelope)
		 select dispatcher.first_of(dispatcher.day_at(now())) + 1000000 + i, i, '{}'
		 from generate_series(1, $1::int) i`,
		`insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome,
		   provider_reference, segments, price_micros, currency, claimed_at, settled_at, instance,
		   answers)
		 select dispatcher.first_of(dispatcher.day_at(now())) + 1000000 + i, 1, 'a', 'first_choice',
		   'accepted', 'old-' || i, 1, 0, 'EUR', now(), now(), 0, 1 from generate_series(1, $1::int) i`,
		`insert into dispatcher.receipts (channel, reference, message_seq, attempt, part)
		 select 'a', 'old-' || i, dispatcher.first_of(dispatcher.day_at(now())) + 1000000 + i, 1, 1
		 from generate_series(1, $1::int) i`,
	} {
		execute(t, db, sql, rows)
	}
	round("warm")
	if large := pages(t, l, db, func() { round("large") }); large > 2*small {
		t.Errorf("%d pages among %d messages, %d among few", large, rows, small)
	} else {
		t.Logf("%d pages among %d messages, %d among few", large, rows, small)
	}
}

// pages is how many pages the ledger's only session for claims and settlements reads while do runs,
// in tables and indexes.
func pages(t *testing.T, l *ledger.Ledger, db *pgx.Conn, do func()) int64 {
	t.Helper()
	count := func() int64 {
		if err := l.ReportPages(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The rows that this session has inserted are counted now, and not while do runs.
		execute(t, db, `select pg_stat_force_next_flush()`)
		return scalar[int64](t, db, `select sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0)
			+ coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint
			from pg_statio_user_tables where schemaname = 'dispatcher'
			  and relname ~ '^(messages|payloads|attempts|receipts|due|held)'`)
	}
	before := count()
	do()
	return count() - before
}
