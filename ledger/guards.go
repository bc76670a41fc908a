package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Guards reads the message counts that the guards of the routing document compare, and stores the
// trips of those guards.
type Guards struct{ *db }

// Traffic is the number of messages received in some period, for one tenant and one calling code.
type Traffic struct {
	Tenant      string // empty for none
	CallingCode int64  // 0 for none
	Messages    int64
}

// usualTraffic adds up, over the closed days, the messages with a first choice that were received
// in one hour of the day.
const usualTraffic = `
	select f.tenant, f.calling_code, sum(f.messages)::bigint
	from (select day, max(from_at) as from_at from dispatcher.closings
	  where day >= $1::date and day < $2::date group by day) d
	join dispatcher.choice_figures f on f.day = d.day and f.hour = d.from_at + $3::interval
	group by 1, 2`

// Usual returns the messages with a first choice that were received in one hour of the day, summed
// over the last business days before today, and how many of these days are closed. The hour begins
// offset after the beginning of the day. Days that are not closed are left out of both results.
// today is the running business day.
func (s *Guards) Usual(
	ctx context.Context, today BusinessDay, last int, offset time.Duration,
) (all []Traffic, days int, err error) {
	date, err := time.Parse(time.DateOnly, today.Date)
	if err != nil {
		return nil, 0, wrap("read usual traffic", err)
	}
	first := date.AddDate(0, 0, -last)
	batch := &pgx.Batch{}
	batch.Queue(`select count(distinct day) from dispatcher.closings
		where day >= $1::date and day < $2::date`, first, date).
		QueryRow(func(row pgx.Row) error { return row.Scan(&days) })
	batch.Queue(usualTraffic, first, date, offset).Query(func(r pgx.Rows) error {
		all, err = pgx.CollectRows(r, pgx.RowToStructByPos[Traffic])
		return err
	})
	err = s.reports.SendBatch(ctx, batch).Close() // not in the return statement: it sets all and days
	return all, days, wrap("read usual traffic", err)
}

// Received returns the messages received in [from, to) that have a first choice, as in
// usualTraffic. It reads the messages of that period, and of two minutes around it, by the primary
// key: about one second for a million messages.
func (s *Guards) Received(ctx context.Context, from, to time.Time) ([]Traffic, error) {
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, err
	}
	all, err := atEdge(ctx, s.db, pgx.RowToStructByPos[Traffic], `
		select coalesce(m.tenant, ''), coalesce(m.calling_code, 0), count(*)
		from (select tenant, calling_code, received_at, first_choice from dispatcher.messages
		  where seq > $1 and seq < $2 offset 0) m
		where m.received_at >= $3 and m.received_at < $4 and m.first_choice is not null
		group by 1, 2`, low, high, from, to)
	return all, wrap("count received messages", err)
}

// AddPrefixes adds messages to the counts of an hour. The prefixes, with their plus, have this many
// digits. It also marks the hour as counted, so it is called with no messages too. If it returns an
// error, the messages may have been added.
func (s *Guards) AddPrefixes(
	ctx context.Context, hour time.Time, digits int, messages map[string]int64,
) error {
	prefixes, counts, sum := make([]string, 1), make([]int64, 1), int64(0)
	for _, prefix := range slices.Sorted(maps.Keys(messages)) { // all processes lock in this order
		prefixes, counts = append(prefixes, prefix), append(counts, messages[prefix])
		sum += messages[prefix]
	}
	counts[0] = sum
	_, err := s.reports.Exec(ctx, `
		insert into dispatcher.guard_counts (hour, digits, prefix, messages)
		select $1, $2, n.prefix, n.messages from unnest($3::text[], $4::bigint[])
		  with ordinality as n(prefix, messages, nr) order by n.nr
		on conflict (hour, digits, prefix)
		do update set messages = guard_counts.messages + excluded.messages`,
		hour, digits, prefixes, counts)
	return wrap("add to the counts of prefixes", err)
}

// Prefixes returns the messages of some hours by prefix, and how many of the hours were counted.
func (s *Guards) Prefixes(
	ctx context.Context, digits int, hours []time.Time,
) (messages map[string]int64, counted int, err error) {
	type row struct {
		Prefix   string
		Messages int64
		Hours    int
	}
	all, err := rows(ctx, s.db, pgx.RowToStructByPos[row], `
		select prefix, sum(messages)::bigint, count(*)::int from dispatcher.guard_counts
		where digits = $1 and hour = any($2) group by 1`, digits, hours)
	messages = make(map[string]int64, len(all))
	for _, r := range all {
		if r.Prefix == "" {
			counted = r.Hours
			continue
		}
		messages[r.Prefix] = r.Messages
	}
	return messages, counted, wrap("read the counts of prefixes", err)
}

// ForgetPrefixes deletes the counts of the hours before a time.
func (s *Guards) ForgetPrefixes(ctx context.Context, before time.Time) error {
	_, err := s.reports.Exec(ctx, `delete from dispatcher.guard_counts where hour < $1`, before)
	return wrap("delete the counts of prefixes", err)
}

// Trip is one time that a guard found more traffic than it allows.
type Trip struct {
	ID           int64
	At           time.Time // by the database's clock
	Per, Subject string
	Action       string
	Hour         time.Time // when the hour began
	Seen         int64     // messages in the hour, until At
	Usual        float64   // mean number of messages in that hour of the day
	Days         int       // how many days Usual is the mean of
	Times        int64     // the guard trips above Times*Usual
	AtLeast      int64     // and not below this number
	Version      int64     // routing version that paused Subject; 0 when the trip paused nothing
}

// Record stores a trip and reports whether it is the first of its hour, subject and action. A later
// one is not stored.
func (s *Guards) Record(ctx context.Context, t *Trip) (first bool, err error) {
	tag, err := s.reports.Exec(ctx, `
		insert into dispatcher.guard_trips
		  (per, subject, action, hour, seen, usual, days, times, at_least, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10::bigint, 0))
		on conflict on constraint guard_trips_once do nothing`,
		t.Per, t.Subject, t.Action, t.Hour, t.Seen, t.Usual, t.Days, t.Times, t.AtLeast, t.Version)
	return err == nil && tag.RowsAffected() == 1, wrap("record a trip of a guard", err)
}

// mostTrips is how many trips Trips lists at most.
const mostTrips = 1000

// Trips lists the trips since an instant, newest first, at most 1000.
func (s *Guards) Trips(ctx context.Context, since time.Time) ([]Trip, error) {
	return s.trips(ctx, since, nil, mostTrips)
}

// TripsOf lists all trips of the hour that begins at an instant, newest first.
func (s *Guards) TripsOf(ctx context.Context, hour time.Time) ([]Trip, error) {
	return s.trips(ctx, nil, hour, nil)
}

// trips lists trips, newest first. nil stands for any time, any hour and all of them.
func (s *Guards) trips(ctx context.Context, since, hour, limit any) ([]Trip, error) {
	trips, err := rows(ctx, s.db, pgx.RowToStructByPos[Trip], `
		select id, at, per, subject, action, hour, seen, usual, days, times, at_least,
		  coalesce(version, 0)
		from dispatcher.guard_trips
		where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or hour = $2)
		order by id desc limit $3`, since, hour, limit)
	for i := range trips {
		trips[i].At, trips[i].Hour = trips[i].At.UTC(), trips[i].Hour.UTC()
	}
	return trips, wrap("list trips of guards", err)
}
