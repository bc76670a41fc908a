package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// Eight goroutines claim and settle on three channels, some of them limited below what arrives.
// Each claim names another subset of the channels.
func TestConcurrentClaimsGrantExactlyWhatTheyDecidedAndNeverMore(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	first := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)})
	second := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)})
	apply(t, first,
		ledger.ChannelSpec{Name: "a", ActiveMax: 60, Limits: []admission.Limit{
			limit(admission.Second, 200), limit(admission.Day, 700),
		}},
		ledger.ChannelSpec{Name: "b", Limits: []admission.Limit{limit(admission.Hour, 500), {
			Window: admission.Day, Max: 5000, Unit: admission.Segments,
		}}},
		ledger.ChannelSpec{Name: "c", ActiveMax: 40, Limits: []admission.Limit{
			limit(admission.Minute, 300),
		}})
	rounds := tier.Size(5, 30)
	subsets := [][]string{{"a", "b", "c"}, {"b", "c"}, {"a", "c"}, {"a", "b"}}
	var given atomic.Int64
	var workers sync.WaitGroup
	for worker := range 8 {
		l := []*ledger.Ledger{first, second}[worker%2]
		workers.Go(func() {
			for round := range rounds {
				messages := batch(fmt.Sprintf("w%d-r%d", worker, round), 20)
				n, err := claimAndSettle(t, l, messages, subsets[(worker+round)%len(subsets)])
				if err != nil {
					t.Error(err)
				}
				given.Add(int64(n))
			}
		})
	}
	workers.Wait()
	for sql, want := range map[string]int64{
		`select count(*) from dispatcher.all_attempts`: given.Load(),
		`select count(*) from dispatcher.messages`: int64(
			8 * rounds * 20),
		`select count(*) from dispatcher.message_states where state = 'waiting'`: int64(
			8*rounds*20) - given.Load(),
		`select sum(active) from audit.active`: 0,
		`select sum(granted) from audit.limit_windows where window_seconds=86400`: scalar[int64](t,
			db, `select count(*) from dispatcher.all_attempts where channel <> 'c'`),
	} {
		if got := scalar[int64](t, db, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	if got := amiss(t, db); got != "" {
		t.Error(got)
	}
	// Every window's counter is the number of attempts in it, whoever made them.
	if n := scalar[int64](t, db, `
		select count(*) from audit.limit_windows w where unit = 'messages'
		  and window_seconds <> 86400 and granted <> (
		  select count(*) from audit.attempts a where a.channel = w.channel
		    and a.claimed_at >= w.window_start
		    and a.claimed_at < w.window_start + make_interval(secs => w.window_seconds))`); n != 0 {
		t.Errorf("%d windows do not reconcile with their attempts", n)
	}
}

// claimAndSettle returns how many messages got a channel.
func claimAndSettle(
	t testing.TB, l *ledger.Ledger, messages []ledger.Message, channels []string,
) (int, error) {
	var sent []ledger.Message
	err := runClaim(t.Context(), l, ledger.Claim{Messages: messages, Channels: channels},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d, err := give(seen)
			for i := range d.Each {
				if d.Each[i].State == ledger.Sending {
					sent = append(sent, seen.Messages[i])
				}
			}
			return d, err
		})
	if err != nil {
		return 0, err
	}
	slices.Reverse(sent) // settlements come in any order
	return len(sent), l.Settlements.Settle(t.Context(), accepted(sent))
}

// Two consumers claim the same ids, as after a rebalance, in opposite orders.
func TestConcurrentClaimsOfTheSameMessagesStoreThemOnce(t *testing.T) {
	t.Parallel()
	l := open(t)
	var fresh, duplicates atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			messages := batch("same", 200)
			slices.Reverse(messages)
			seen := claimAll(t, l, messages, "a")
			for _, intake := range seen.Intakes {
				switch intake {
				case ledger.Fresh:
					fresh.Add(1)
				case ledger.Duplicate:
					duplicates.Add(1)
				case ledger.Due, ledger.Conflict:
				}
			}
		})
	}
	workers.Wait()
	if fresh.Load() != 200 || duplicates.Load() != 1400 {
		t.Errorf("%d fresh, %d duplicates", fresh.Load(), duplicates.Load())
	}
}

// Two instances recover the same lost attempts at the same time.
func TestConcurrentSettlementsOfTheSameAttemptsTakeEffectOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	l := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)})
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000}, ledger.ChannelSpec{
		Name: "b", ActiveMax: 1000,
	})
	settlements := append(accepted(claimAll(t, l, batch("a", 200), "a").Messages),
		accepted(claimAll(t, l, batch("b", 200), "b").Messages)...)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			mine := slices.Clone(settlements)
			if worker%2 == 1 {
				slices.Reverse(mine)
			}
			if err := l.Settlements.Settle(t.Context(), mine); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if n := scalar[int64](t, db, `select sum(active) from audit.active`); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
	if n := scalar[int64](t, db, `select sum(cardinality(keys)) from dispatcher.outbox`); n != 400 {
		t.Errorf("%d notices", n)
	}
}

func TestClaimRefusesDecisionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a", Limits: []admission.Limit{limit(admission.Day, 5)}})
	for name, spoil := range map[string]func(*ledger.Seen, *ledger.Decisions){
		"too few decisions": func(_ *ledger.Seen, d *ledger.Decisions) { d.Each = d.Each[1:] },
		"no slot taken": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Active.Count--
		},
		"no unit taken": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Counters[0].Granted--
		},
		"limit raised": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Counters[0].Max++
		},
		"counter dropped": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Counters = nil
		},
		"attempt out of turn": func(_ *ledger.Seen, d *ledger.Decisions) {
			d.Each[0].Attempt.Number = 2
		},
		"foreign channel": func(_ *ledger.Seen, d *ledger.Decisions) {
			d.Each[0].Attempt.Channel = "z"
		},
		"left in state sending": func(_ *ledger.Seen, d *ledger.Decisions) {
			d.Each[1] = ledger.Decision{}
		},
		"accepted": func(_ *ledger.Seen, d *ledger.Decisions) {
			d.Each[1].State = ledger.Accepted
		},
		"waits without a time": func(_ *ledger.Seen, d *ledger.Decisions) {
			d.Each[1] = ledger.Decision{State: ledger.Waiting}
		},
	} {
		// Not in parallel: whoever waits longer than maxSilence for a turn may not claim.
		t.Run(name, func(t *testing.T) {
			err := runClaim(t.Context(), l, ledger.Claim{
				Messages: batch(name, 2),
				Channels: []string{"a"},
			}, func(seen *ledger.Seen) (ledger.Decisions, error) {
				d, err := give(seen)
				spoil(seen, &d)
				return d, err
			})
			if refused := (*ledger.DecisionError)(nil); !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClaimNamesChannelsWithoutARowAfterAskingDecide(t *testing.T) {
	t.Parallel()
	l := open(t)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claim := ledger.Claim{Messages: batch("m", 1), Channels: []string{"a", "b", "never"}}
	err := runClaim(t.Context(), l, claim, give)
	if missing := (*ledger.MissingChannelsError)(nil); !errors.As(err, &missing) ||
		!slices.Equal(missing.Names, []string{"b", "never"}) {
		t.Errorf("got %v", err)
	}
	stale := errors.New("stale")
	err = runClaim(t.Context(), l, claim, func(seen *ledger.Seen) (ledger.Decisions, error) {
		if seen.Version != 2 || admit(seen, &seen.Channels[1].Gate, 1) {
			t.Errorf("version %d, removed channel admits", seen.Version)
		}
		return ledger.Decisions{}, stale
	})
	if !errors.Is(err, stale) {
		t.Errorf("got %v", err)
	}
}
