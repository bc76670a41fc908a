package ledger

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// Day is a UTC day, counted from 1970-01-01. Messages, payloads and attempts are stored in one
// partition per day, which is dropped as a whole. A message belongs to the day on which it was
// received, by the database's clock as the storing process last read it. Its payload and attempts
// belong to the same day, whenever they are written.
type Day int32

// daySpan is how many message numbers a day has: 68 billion. Every number up to the year 2326 is
// exact as a float64, which readers of JSON may use.
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

// dayStatement is a statement about messages of one day. Its text names the partitioned tables; it
// is sent with the names of the day's partitions. So the planner neither plans for the other days
// nor locks them, however many there are.
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

// eachDay calls do once for each day of n messages, with the range [from, to) of their positions.
// seq returns the number of a message by its position and must ascend.
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

// daysAhead is how many days after today get partitions in advance.
const daysAhead = 2

// calendar is what the process knows of the days. Heartbeats and claims update it. It may be a
// moment behind: then a message is stored on the day before. A claim that finds it further behind,
// or with another turn, starts again.
type calendar struct {
	today atomic.Int32 // when the database's clock was last read
	turn  atomic.Int64 // of the tables of ids
	// countsFrom has the days that have partitions, from yesterday on: see insertIDs.
	countsFrom atomic.Pointer[map[Day]int64]
}

// saw sets today by the database's clock, also when the clock has gone back. Otherwise a clock that
// was ahead for a moment would leave messages on a future day.
func (c *calendar) saw(now time.Time) { c.today.Store(int32(DayAt(now))) }

// openDay is the day on which messages are stored now, and the value of the sequence from which it
// counts them. It creates the partitions of the day if needed.
func (d *db) openDay(ctx context.Context) (today Day, countsFrom int64, err error) {
	for tries := 0; ; tries++ {
		today = Day(d.calendar.today.Load())
		if days := d.calendar.countsFrom.Load(); days != nil {
			if from, made := (*days)[today]; made {
				return today, from, nil
			}
		}
		if tries == 2 { // the clock is set while it is read
			return 0, 0, fmt.Errorf("%w: the day %s has no partitions", errConnection, today)
		}
		if err := d.makeDays(ctx); err != nil {
			return 0, 0, err
		}
	}
}

// makeDays creates the partitions of today and the next daysAhead days, unless they exist.
func (d *db) makeDays(ctx context.Context) error {
	var now time.Time
	var days []int32
	var from []int64
	if _, err := d.reports.Exec(ctx, `select dispatcher.make_days($1)`, daysAhead); err != nil {
		return err
	}
	var turn int64
	err := d.reports.QueryRow(ctx, `
		select clock_timestamp(), (select turn from dispatcher.id_turns),
		  array_agg(day order by day), array_agg(counts_from order by day)
		from dispatcher.days where day >= dispatcher.day_at(clock_timestamp()) - 1`).
		Scan(&now, &turn, &days, &from)
	if err != nil {
		return err
	}
	countsFrom := make(map[Day]int64, len(days))
	for i, day := range days {
		countsFrom[Day(day)] = from[i]
	}
	d.calendar.saw(now)
	d.calendar.countsFrom.Store(&countsFrom)
	d.calendar.turn.Store(turn)
	return nil
}
