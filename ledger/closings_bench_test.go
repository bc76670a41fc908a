package ledger_test

import (
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkCloseADay adds up a day of 100 000 messages, or with LONG_TESTS=1 ten million, on which
// one message of twenty was refused by its first choice and carried by another channel. All have a
// receipt.
func BenchmarkCloseADay(b *testing.B) {
	url := ledgertest.Fresh(b)
	l, db := connect(b, ledger.Config{URL: url}), raw(b, url)
	day := ledger.NewBusinessDay(time.Now().AddDate(0, 0, -1), time.UTC)
	messages := tier.Size(100_000, 10_000_000)
	execute(b, db, `select dispatcher.make_day(dispatcher.day_at($1::timestamptz))`, day.From)
	execute(b, db, `insert into dispatcher.messages (seq, received_at, id, lane, tenant, route,
		  routing_version, draw, draw_size, draw_key_id, first_choice, calling_code, segments, alphabet,
		  attempts, state)
		select dispatcher.first_of(dispatcher.day_at($1)) + i, $1::timestamptz + i * interval '1 day' / $2,
		  'closing-' || i, 'bulk', (array['shop', 'bank', 'post'])[1 + i % 3], 'default', 1, i % 100, 100,
		  'abcdef01', (array['a', 'b', 'c', 'c'])[1 + i % 4], 44, 1, 'gsm7',
		  case i % 20 when 3 then 2 else 1 end, case i % 20 when 3 then 'accepted' else 'sending' end
		from generate_series(1, $2::int - 1) i`, day.From, messages)
	execute(b, db, `insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros,
		  attempt, segments, channel, reason, currency, settled_at, answers, outcome, receipt_state,
		  delivered_at)
		select seq, 1, received_at, 28000, n,
		  1, case n when 1 then first_choice else 'd' end,
		  case n when 1 then 'first_choice' else 'fallback' end, 'GBP', received_at, 1,
		  case when n < attempts then 'refused' else 'accepted' end,
		  case when n = attempts then 'delivered' end, case when n = attempts then received_at end
		from dispatcher.messages, generate_series(1, attempts) n order by received_at, n`)
	execute(b, db, `vacuum analyze dispatcher.messages, dispatcher.attempts`)
	var m measured
	for b.Loop() {
		m.round(b, func() {
			closed, ours, err := l.Reports.Close(b.Context(), day, nil)
			if err != nil || !ours || closed.Changes == 0 {
				b.Fatal(closed, ours, err)
			}
		})
		b.StopTimer()
		execute(b, db, `truncate dispatcher.closings, dispatcher.choice_figures,
			dispatcher.attempt_figures, dispatcher.carried_figures, dispatcher.choice_sums,
			dispatcher.attempt_sums, dispatcher.carried_sums`)
		b.StartTimer()
	}
	million := float64(messages) / 1e6
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/million, "s/million")
	// Ten million in a minute. The smaller day also has the cost that does not depend on the number of
	// messages.
	m.within(b, time.Second+time.Duration(6*million*float64(time.Second)))
}
