package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Config says when a breaker opens and how it closes again. The zero value of each
// field but Name stands for the default in its comment.
type Config struct {
	// Name is the channel's name; it is handed to nothing but error sentences.
	Name string
	// Failures in a row open the breaker (5).
	Failures uint32
	// Percent of failures among at least Sample answers within Window opens it too
	// (50 of 20 within 10s). A channel that fails every other message would never
	// reach Failures in a row.
	Percent uint32
	Sample  uint32
	Window  time.Duration
	// OpenFor is how long the breaker stays open before it lets probes through (5s).
	OpenFor time.Duration
	// HalfOpenMax is how many probes may be under way after that; as many successes
	// in a row close the breaker, one failure opens it again (1).
	HalfOpenMax uint32
	// OnChange, when set, hears of each change of state. It runs under the breaker's
	// lock: it must return at once and must not call the breaker.
	OnChange func(from, to State)
}

// buckets is the resolution of the rolling window.
const buckets = 10

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("breaker: name is empty")
	case c.Percent > 100:
		return fmt.Errorf("breaker %s: percent %d is above 100", c.Name, c.Percent)
	case c.Window < 0, c.OpenFor < 0:
		return fmt.Errorf("breaker %s: window and open-for must not be negative", c.Name)
	case c.Window > 0 && c.Window < buckets:
		return fmt.Errorf("breaker %s: window %s is too short", c.Name, c.Window)
	}
	return nil
}

// withDefaults fills in what was left at zero.
func (c Config) withDefaults() Config {
	c.Failures = orDefault(c.Failures, 5)
	c.Percent = orDefault(c.Percent, 50)
	c.Sample = orDefault(c.Sample, 20)
	c.Window = orDefault(c.Window, 10*time.Second)
	c.OpenFor = orDefault(c.OpenFor, 5*time.Second)
	c.HalfOpenMax = orDefault(c.HalfOpenMax, 1)
	return c
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// settings translates to the library. Errors given to Execute are one of the two
// classes of this package or nil.
func (c Config) settings() gobreaker.Settings {
	st := gobreaker.Settings{
		Name:         c.Name,
		MaxRequests:  c.HalfOpenMax,
		Interval:     c.Window,
		BucketPeriod: c.Window / buckets,
		Timeout:      c.OpenFor,
		ReadyToTrip:  c.trips,
		IsExcluded:   func(err error) bool { return errors.Is(err, errExcluded) },
	}
	if c.OnChange != nil {
		st.OnStateChange = func(_ string, from, to gobreaker.State) { c.OnChange(stateOf(from), stateOf(to)) }
	}
	return st
}

// trips decides after each failure whether the breaker opens.
func (c Config) trips(n gobreaker.Counts) bool {
	if n.ConsecutiveFailures >= c.Failures {
		return true
	}
	answers := uint64(n.TotalSuccesses) + uint64(n.TotalFailures)
	return answers >= uint64(c.Sample) && uint64(n.TotalFailures)*100 >= uint64(c.Percent)*answers
}
