package pipeline

import "time"

// spareTime is how long before its latest time an attempt is let go, however many leave with it.
const spareTime = 10 * time.Millisecond

// spread puts off the attempts of one claim whose places have passed while it was written: on each
// channel they leave at twice their pace until they have caught up, and not in one burst.
func spread(attempts []*openAttempt, now time.Time) {
	began := make(map[string]time.Time, 8) // the first place on each channel
	for _, f := range attempts {
		if at, known := began[f.Channel]; !f.leave.IsZero() && (!known || f.leave.Before(at)) {
			began[f.Channel] = f.leave
		}
	}
	for _, f := range attempts {
		from := began[f.Channel]
		if f.leave.IsZero() || !from.Before(now) {
			continue
		}
		at := now.Add(f.leave.Sub(from) / 2)
		if last := f.latest.Add(-spareTime); !f.latest.IsZero() && at.After(last) {
			at = last
		}
		if at.After(f.leave) {
			f.leave = at
		}
	}
}
