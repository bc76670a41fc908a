// Package past fills a database with the messages of the last days, for measurements over a ledger
// that has been in use.
package past

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/migrations"
)

// Days is how many days are filled, without today.
const Days = 60

// keptDays is how many of them still have their ids and payloads, and movedDays how many days back
// the last one is whose receipts have moved to their partition.
const (
	keptDays  = 7
	movedDays = 15
)

// old is the number, the envelope and the salt of message i of a day d.
const old = `lateral (select '+4477' || lpad((i % 100000000)::text, 8, '0') as number) n,
	   lateral (select convert_to('{"id":"old-' || d.day || '-' || i || '","to":"' || n.number
	     || '","from":"ACME","text":"' || repeat('An old text. ', 8) || '"}', 'UTF8') as envelope,
	     decode(md5(d.day || '-' || i), 'hex') as salt) p`

// fillDay stores messages of a past day, $1 days ago. Each was accepted at its first attempt and
// delivered. $2 is how many.
var fillDay = [...]string{
	`select dispatcher.make_day(dispatcher.day_at(now()) - $1::int), $2::int`,
	`insert into dispatcher.messages (seq, kafka_offset, routing_version, draw, draw_size,
	   received_at, expires_at, finished_at, attempts, state, id, lane, topic, route, draw_key_id,
	   first_choice, segments, alphabet, number_hmac, envelope_hmac, calling_code)
	 select dispatcher.first_of(d.day) + i, i, 1, i % 100, 100, d.began + i * d.step,
	   d.began + i * d.step + interval '1 hour', d.began + i * d.step + interval '3 seconds', 1,
	   'delivered', 'old-' || d.day || '-' || i, 'transactional', 'sms.transactional', 'default',
	   '0a1b2c3d', c.name, 1, 'gsm7', i * 7,
	   ('x' || encode(substr(sha256(p.salt || p.envelope), 1, 8), 'hex'))::bit(64)::bigint, 44
	 from (select dispatcher.day_at(now()) - $1::int as day,
	     date_trunc('day', now(), 'UTC') - $1::int * interval '1 day' as began,
	     interval '1 day' / $2::int as step) d, generate_series(1, $2::int) i,
	   lateral (select (array['a', 'b', 'c'])[1 + i % 3] as name) c, ` + old,
	`insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome,
	   provider_reference, provider_code, segments, price_micros, currency, claimed_at, settled_at,
	   delivered_at, receipt_at, receipt_state, instance, answers)
	 select m.seq, 1, m.first_choice, 'first_choice', 'accepted', left(md5(m.seq::text), 16), '0',
	   1, 30000, 'EUR', m.received_at, m.received_at, m.finished_at, m.finished_at, 'delivered', 0, 1
	 from dispatcher.messages m where dispatcher.day_of(m.seq) = dispatcher.day_at(now()) - $1::int
	   and m.seq > dispatcher.first_of(dispatcher.day_at(now()) - $1::int)
	   and m.seq <= dispatcher.first_of(dispatcher.day_at(now()) - $1::int) + $2::int`,
}

// fillReceipts stores the receipts of such a day, in receipts or past_receipts. makeMoved makes the
// partition of the day in past_receipts.
const (
	makeMoved = `select $2::int, dispatcher.move_receipts(dispatcher.day_at(now()) - $1::int, 0)`

	fillReceipts = `insert into dispatcher.%s (channel, reference, message_seq, attempt, part, state,
	   received_at)
	 select a.channel, a.provider_reference, a.message_seq, 1, 1, 'delivered', a.receipt_at
	 from dispatcher.attempts a
	 where a.message_seq > dispatcher.first_of(dispatcher.day_at(now()) - $1::int)
	   and a.message_seq <= dispatcher.first_of(dispatcher.day_at(now()) - $1::int) + $2::int
	 order by a.message_seq`
)

// fillKept stores the ids and payloads of such a day.
var fillKept = [...]string{
	`insert into dispatcher.ids_0 (id, seq) select m.id, m.seq from dispatcher.messages m
	 where m.seq > dispatcher.first_of(dispatcher.day_at(now()) - $1::int)
	   and m.seq <= dispatcher.first_of(dispatcher.day_at(now()) - $1::int) + $2::int
	 order by 1`,
	`insert into dispatcher.payloads (seq, digest, recipient, envelope, salt)
	 select dispatcher.first_of(d.day) + i, i, dispatcher.recipient('', n.number), p.envelope, p.salt
	 from (select dispatcher.day_at(now()) - $1::int as day) d, generate_series(1, $2::int) i, ` +
		old,
}

// Fill fills an empty database as if it had been in use for Days, with that many messages in all,
// each delivered. It calls step with a sentence for every ten days.
func Fill(ctx context.Context, url string, messages int, step func(string)) error {
	if err := migrations.Migrate(ctx, url); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	if _, err := conn.Exec(ctx, `set synchronous_commit = off; set jit = off;
		set plan_cache_mode = force_custom_plan`); err != nil {
		return err
	}
	for back := Days; back > 0; back-- {
		if back%10 == 0 {
			step(fmt.Sprintf("%d of %d days of history", Days-back, Days))
		}
		if err := FillDay(ctx, conn, back, messages/Days, back >= movedDays); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `vacuum (freeze, analyze)`); err != nil {
		return err
	}
	// A vacuum leaves out the last range of each day. Days.Keep does not.
	_, err = conn.Exec(ctx, `select dispatcher.summarise(inhrelid) from pg_inherits
		where inhparent = 'dispatcher.attempts_claimed_at'::regclass`)
	return err
}

// FillDay stores that many messages of the day so many days back. moved says whether their receipts
// have moved to their partition.
func FillDay(ctx context.Context, conn *pgx.Conn, back, messages int, moved bool) error {
	statements := slices.Clone(fillDay[:])
	if moved {
		statements = append(statements, makeMoved, fmt.Sprintf(fillReceipts, "past_receipts"))
	} else {
		statements = append(statements, fmt.Sprintf(fillReceipts, "receipts"))
	}
	if back <= keptDays {
		statements = append(statements, fillKept[:]...)
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql, back, messages); err != nil {
			return fmt.Errorf("fill the ledger: %w", err)
		}
	}
	return nil
}
