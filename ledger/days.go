package ledger

import (
	"context"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// Day is a UTC day, counted from 1970-01-01. Messages, payloads and attempts are kept by day, in
// partitions that are dropped as a whole. A message belongs to the day on which it was received, by
// the clock of the database as the process that stored it last read it, and so does everything
// that becomes of it later.
type Day int32

// daySpan is how many numbers a day has: 68 billion. All numbers up to the year 2326 are exact as a
// float64, which is what readers of JSON may have.
const daySpan = 1 << 36

// DayOf is the day of a message.
func DayOf(seq int64) Day { return Day(seq / daySpan) } //nolint:gosec // Positive, and in range.

// DayAt is the day of an instant.
func DayAt(at time.Time) Day {
	return Day(at.Unix() / 86400) //nolint:gosec // As above.
}

// first is the smallest number of the day.
func (d Day) first() int64 { return int64(d) * daySpan }

// Begin is when the day begins.
func (d Day) Begin() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// end is when the day ends.
func (d Day) end() time.Time { return (d + 1).Begin() }

// String is the day as 2006-01-02.
func (d Day) String() string { return d.Begin().Format(time.DateOnly) }

// suffix ends the names of the day's partitions.
func (d Day) suffix() string { return d.Begin().Format("20060102") }

// dayStatement is a statement about messages of one day. It is written with the names of the
// partitioned tables, and sent with those of the day's partitions: then the planner need not look
// at any other day, and takes no lock on it, however many there are.
type dayStatement struct {
	text string
	days sync.Map // Day to string
}

var partitioned = regexp.MustCompile(`\bdispatcher\.(messages|payloads|attempts)\b`)

func ofDay(text string) *dayStatement { return &dayStatement{text: text} }

// on is the statement for a day.
func (s *dayStatement) on(day Day) string {
	if text, ok := s.days.Load(day); ok {
		return text.(string)
	}
	text := partitioned.ReplaceAllString(s.text, "${0}_"+day.suffix())
	s.days.Store(day, text)
	return text
}

// eachDay calls do for each day of some messages, with the range of positions that it has; seq
// ascends.
func eachDay(n int, seq func(i int) int64, do func(day Day, from, to int)) {
	for from := 0; from < n; {
		day, to := DayOf(seq(from)), from+1
		for to < n && DayOf(seq(to)) == day {
			to++
		}
		do(day, from, to)
		from = to
	}
}

// daysAhead is for how many days after today partitions are made.
const daysAhead = 2

// calendar is what the process knows of the days. Heart-beats and claims keep it up to date. It may
// be a moment behind: a message is stored on the day that was today a moment ago, and a claim that
// is further behind, or has another turn, begins anew.
type calendar struct {
	today atomic.Int32 // by the last look at the database's clock
	made  atomic.Int32 // the last day that has partitions
	turn  atomic.Int64 // of the tables of ids
}

// saw notes the database's clock, also when it has gone back: one that was ahead for a moment must
// not leave messages on a day to come.
func (c *calendar) saw(now time.Time) { c.today.Store(int32(DayAt(now))) }

// openDay is the day on which messages are stored now. It makes partitions when there are none.
func (d *db) openDay(ctx context.Context) (Day, error) {
	if today := d.calendar.today.Load(); today > 0 && today <= d.calendar.made.Load() {
		return Day(today), nil
	}
	if err := d.makeDays(ctx); err != nil {
		return 0, err
	}
	return Day(d.calendar.today.Load()), nil
}

// makeDays makes the partitions of today and the next days, unless they are there.
func (d *db) makeDays(ctx context.Context) error {
	var now time.Time
	var made int32
	if _, err := d.reports.Exec(ctx, `select dispatcher.make_days($1)`, daysAhead); err != nil {
		return err
	}
	var turn int64
	err := d.reports.QueryRow(ctx, `select clock_timestamp(), (select max(day) from dispatcher.days),
		(select turn from dispatcher.id_turns)`).Scan(&now, &made, &turn)
	if err != nil {
		return err
	}
	d.calendar.saw(now)
	d.calendar.made.Store(made)
	d.calendar.turn.Store(turn)
	return nil
}
