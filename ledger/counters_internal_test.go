package ledger

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// TestStoredReleaseTimesAreNoSoonerThanDecided: the database stores microseconds. If release times
// were rounded down, a thousand claims of one unit each would release later units too early.
func TestStoredReleaseTimesAreNoSoonerThanDecided(t *testing.T) {
	t.Parallel()
	const units, pace = 1000, 3500 * time.Nanosecond
	began := time.Date(2026, 11, 21, 12, 30, 30, 0, time.UTC)
	c := admission.Counter{Limit: admission.Limit{
		Window: admission.Second, Max: 300_000,
		Sliding: true, Burst: 1,
	}}
	m := &admission.Moment{Now: began, Earliest: began, Zone: time.UTC}
	m.Roll(&c)
	account := []admission.Account{{Counter: &c, Rate: 1}}
	for range units {
		release, e := admission.Fit(m, account, &admission.Need{})
		if e != nil {
			t.Fatalf("%+v", e)
		}
		admission.Take(m, account, &admission.Need{}, release)
		stored := counterArrays([]counterRow{{"a", c}})[8].([]pgtype.Timestamptz)
		c.Next = moment(stored[0])
		m.Now, m.Earliest = c.Next, c.Next
	}
	if took := c.Next.Sub(began); took < units*pace {
		t.Errorf("%d units were released within %s, at %s apart they take %s", units, took, pace,
			units*pace)
	}
}
