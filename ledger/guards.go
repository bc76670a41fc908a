package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Guards are the figures that guards of the routing document compare, and what they found.
type Guards struct{ *db }

// Traffic is how many messages of a tenant to a calling code were received in a time.
type Traffic struct {
	Tenant      string // empty for none
	CallingCode int64  // 0 for none
	Messages    int64
}

// usualTraffic adds up the first choices of an hour of closed days.
const usualTraffic = `
	select f.tenant, f.calling_code, sum(f.messages)::bigint
	from (select day, max(from_at) as from_at from dispatcher.closings
	  where day >= $1::date and day < $2::date group by day) d
	join dispatcher.choice_figures f on f.day = d.day and f.hour = d.from_at + $3::interval
	group by 1, 2`

// Usual is what was received in all of the last days together in an hour that began so long after
// the beginning of the day, and how many of those days are closed: all others are left out. today
// is the business day that is running.
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
	err = s.reports.SendBatch(ctx, batch).Close() // before what it reads is returned
	return all, days, wrap("read usual traffic", err)
}

// Received is what was received from an instant, included, to another, left out. It reads the
// messages of that time, and of two minutes around it, by the primary key: a second per million.
func (s *Guards) Received(ctx context.Context, from, to time.Time) ([]Traffic, error) {
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, err
	}
	all, err := atEdge(ctx, s.db, pgx.RowToStructByPos[Traffic], `
		select coalesce(m.tenant, ''), coalesce(m.calling_code, 0), count(*)
		from (select tenant, calling_code, received_at, detail from dispatcher.messages
		  where seq > $1 and seq < $2 offset 0) m
		where m.received_at >= $3 and m.received_at < $4 and m.detail is null
		group by 1, 2`, low, high, from, to)
	return all, wrap("count received messages", err)
}

// Trip is what a guard found.
type Trip struct {
	ID           int64
	At           time.Time // by the database's clock
	Per, Subject string
	Action       string
	Hour         time.Time // when the hour began
	Seen         int64     // in the hour, until At
	Usual        float64
	Days         int // that Usual is the mean of
	Times        int64
	AtLeast      int64
	Version      int64 // that paused it; 0 when none did
}

// Record keeps a trip and reports whether it is the first of its hour, subject and action. Only
// that one is kept.
func (s *Guards) Record(ctx context.Context, t *Trip) (first bool, err error) {
	tag, err := s.reports.Exec(ctx, `
		insert into dispatcher.guard_trips
		  (per, subject, action, hour, seen, usual, days, times, at_least, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10::bigint, 0))
		on conflict on constraint guard_trips_once do nothing`,
		t.Per, t.Subject, t.Action, t.Hour, t.Seen, t.Usual, t.Days, t.Times, t.AtLeast, t.Version)
	return err == nil && tag.RowsAffected() == 1, wrap("record a trip of a guard", err)
}

// mostTrips bounds a list of trips.
const mostTrips = 1000

// Trips lists those since an instant, newest first, a thousand at most.
func (s *Guards) Trips(ctx context.Context, since time.Time) ([]Trip, error) {
	trips, err := rows(ctx, s.db, pgx.RowToStructByPos[Trip], `
		select id, at, per, subject, action, hour, seen, usual, days, times, at_least,
		  coalesce(version, 0)
		from dispatcher.guard_trips where at >= $1 order by id desc limit $2`, since, mostTrips)
	for i := range trips {
		trips[i].At, trips[i].Hour = trips[i].At.UTC(), trips[i].Hour.UTC()
	}
	return trips, wrap("list trips of guards", err)
}
