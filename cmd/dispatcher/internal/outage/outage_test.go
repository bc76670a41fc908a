package outage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func TestAnOutageIsReportedAtItsBeginningAtIntervalsAndAtItsEnd(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var tracker Tracker
	for i, c := range []struct {
		at     time.Duration
		report string // the reporter, with a leading + for up
		want   Step
		lasted time.Duration
	}{
		{0, "+claim", Known, 0},
		{0, "claim", Began, 0},
		{time.Second, "claim", Known, time.Second},
		{2 * time.Second, "settle", Known, 2 * time.Second},
		{59 * time.Second, "claim", Known, 59 * time.Second},
		{60 * time.Second, "settle", Lasts, time.Minute},
		{61 * time.Second, "claim", Known, 61 * time.Second},
		{62 * time.Second, "+settle", Known, 62 * time.Second}, // the claim has not reported
		{63 * time.Second, "+other", Known, 63 * time.Second},
		{64 * time.Second, "+claim", Over, 64 * time.Second},
		{65 * time.Second, "+claim", Known, 0},
		{66 * time.Second, "claim", Began, 0},
	} {
		who, up := strings.CutPrefix(c.report, "+")
		report := tracker.Down
		if up {
			report = tracker.Up
		}
		if got, lasted := report("PostgreSQL", who, start.Add(c.at)); got != c.want ||
			lasted != c.lasted {
			t.Errorf("report %d: %v after %v, want %v after %v", i, got, lasted, c.want, c.lasted)
		}
	}
	if since, away := tracker.Since("PostgreSQL"); !away ||
		!since.Equal(start.Add(66*time.Second)) {
		t.Errorf("got away %v since %v", away, since)
	}
	if _, away := tracker.Since("Kafka"); away {
		t.Error("another operation is away")
	}
	tracker.Forget("PostgreSQL", "claim")
	if _, away := tracker.Since("PostgreSQL"); away {
		t.Error("it is away for a reporter that was removed")
	}
}

func TestAFaultWithoutEndIsNewWhenItDidNotComeUpForAWhile(t *testing.T) {
	t.Parallel()
	var tracker Tracker
	start := time.Now()
	for _, c := range []struct {
		at   int // seconds
		want Step
	}{{0, Began}, {30, Known}, {60, Lasts}, {70, Known}, {130, Began}, {189, Known}, {190, Lasts}} {
		if got, _ := tracker.Fault("callbacks",
			start.Add(time.Duration(c.at)*time.Second)); got != c.want {
			t.Errorf("at %d: %v, want %v", c.at, got, c.want)
		}
	}
}

// TestWarningsAreBounded: whatever is reported, by whom and when, each beginning has one end, and
// there is at most one reminder a minute.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(r *rapid.T) {
		var tracker Tracker
		now := time.Unix(0, 0)
		var told time.Time
		open := false
		for range rapid.IntRange(1, 200).Draw(r, "reports") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(r, "ms")) * time.Millisecond)
			who := fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "who"))
			report := tracker.Down
			if rapid.Bool().Draw(r, "up") {
				report = tracker.Up
			}
			switch step, _ := report("x", who, now); step {
			case Began:
				if open {
					r.Fatal("the outage began twice")
				}
				open, told = true, now
			case Lasts:
				if !open || now.Sub(told) < Remind {
					r.Fatal("got a reminder too soon")
				}
				told = now
			case Over:
				if !open {
					r.Fatal("the outage ended twice")
				}
				open = false
			case Known:
			}
			if _, away := tracker.Since("x"); away != open {
				r.Fatalf("got away %v, reported %v", away, open)
			}
		}
	})
}

// TestAnOutageIsOneWarningAndOneLineWhenItIsOver: five parts retry each second for three minutes.
// Errors of the driver are logged at debug level.
func TestAnOutageIsOneWarningAndOneLineWhenItIsOver(t *testing.T) {
	t.Parallel()
	for _, level := range []zerolog.Level{zerolog.InfoLevel, zerolog.DebugLevel} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			l := NewLog(zerolog.New(&out).Level(level))
			for range 150 {
				for _, who := range []string{"claim", "settle", "receipts", "steer", "beat"} {
					l.Down(
						Report{
							What:     "PostgreSQL",
							Reporter: who,
							Sentence: "PostgreSQL does not answer: start it",
							Err:      errors.New("dial tcp"),
						},
					)
				}
				<-time.After(time.Second)
			}
			for _, who := range []string{"claim", "settle", "receipts", "steer", "beat"} {
				l.Up("PostgreSQL", who)
			}
			want := []string{
				`{"level":"warn","what":"PostgreSQL","message":"PostgreSQL does not answer: ` +
					`start it"}`,
				`{"level":"warn","what":"PostgreSQL","for":"1m0s","message":"PostgreSQL does ` +
					`not answer: start it"}`,
				`{"level":"warn","what":"PostgreSQL","for":"2m0s","message":"PostgreSQL does ` +
					`not answer: start it"}`,
				`{"level":"info","what":"PostgreSQL","message":"PostgreSQL is back after 2m30s"}`,
			}
			var got []string
			driver := 0
			for line := range strings.Lines(out.String()) {
				if strings.Contains(line, `"level":"debug"`) && strings.Contains(line, "dial tcp") {
					driver++
					continue
				}
				got = append(got, strings.TrimSpace(line))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %v", strings.Join(got, "\n"))
			}
			if want := map[zerolog.Level]int{zerolog.DebugLevel: 750}[level]; driver != want {
				t.Errorf("%d lines at level %v, want %d", driver, level, want)
			}
		})
	}
}

// probeLog runs a probe in a bubble on something that can be away, and returns the log.
func probeLog(t *testing.T, idle time.Duration, probe func(p *Probe, away *atomic.Bool)) []string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		p := &Probe{
			Log: NewLog(
				zerolog.New(&out).Level(zerolog.InfoLevel),
			), Reporter: "probe", Timeout: time.Second, Again: time.Second, Idle: idle,
			Check: func(context.Context) *Report {
				if away.Load() {
					return &Report{What: "Kafka", Sentence: "start it"}
				}
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		synctest.Wait()
		probe(p, &away)
		cancel()
		<-done
	})
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func wait(d time.Duration) { <-time.After(d) }

func TestAProbeTellsAnOutageFromAFailure(t *testing.T) {
	t.Parallel()
	failure := Report{
		What:     "claim",
		Reporter: "claim",
		Sentence: "look at the locks",
		Err:      errors.New("timeout"),
	}
	for name, c := range map[string]struct {
		idle  time.Duration
		probe func(p *Probe, away *atomic.Bool)
		want  []string
	}{
		"nothing": {0, func(*Probe, *atomic.Bool) { wait(time.Hour) }, nil},
		"away": {0, func(p *Probe, away *atomic.Bool) {
			away.Store(true)
			for range 23 {
				p.Suspect(failure)
				wait(500 * time.Millisecond)
			}
			away.Store(false)
			wait(time.Minute)
		}, []string{
			`{"level":"warn","what":"Kafka","message":"start it"}`,
			`{"level":"info","what":"Kafka","message":"Kafka is back after 12s"}`,
		}},
		"away, and nobody has anything to do": {5 * time.Second, func(_ *Probe, away *atomic.Bool) {
			wait(time.Second)
			away.Store(true)
			// Found at 5 s, and probed each second from then on.
			wait(time.Minute - 500*time.Millisecond)
			away.Store(false)
			wait(time.Minute)
		}, []string{
			`{"level":"warn","what":"Kafka","message":"start it"}`,
			`{"level":"info","what":"Kafka","message":"Kafka is back after 56s"}`,
		}},
		"a failure now and then": {0, func(p *Probe, _ *atomic.Bool) {
			for range 10 {
				p.Suspect(failure)
				wait(time.Minute)
			}
		}, nil},
		"a failure every ten seconds": {0, func(p *Probe, _ *atomic.Bool) {
			for range 6 {
				p.Suspect(failure)
				wait(10 * time.Second)
			}
		}, []string{`{"level":"warn","what":"claim","error":"timeout","message":"look at the ` +
			`locks"}`}},
		"a failure that stays": {0, func(p *Probe, _ *atomic.Bool) {
			for range 40 {
				p.Suspect(failure)
				wait(time.Second)
			}
		}, []string{`{"level":"warn","what":"claim","error":"timeout","message":"look at the ` +
			`locks"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := probeLog(t, c.idle, c.probe); strings.Join(got, "\n") != strings.Join(
				c.want,
				"\n",
			) {
				t.Errorf("got %s", strings.Join(got, "\n"))
			}
		})
	}
}
