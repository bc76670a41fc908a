package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// said is a keyword that first arrived so many minutes ago on a channel. sent is how many minutes
// ago it was sent by the provider's clock, below 0 for not known.
func said(text, channel string, arrived, sent int) ledger.Inbound {
	in := sms(fmt.Sprint(text, channel, arrived, sent), text)
	in.Channel, in.At = channel, time.Now().Add(-time.Duration(arrived)*time.Minute)
	if sent >= 0 {
		in.SentAt = time.Now().Add(-time.Duration(sent) * time.Minute).Truncate(time.Minute)
	}
	return in
}

// TestAnOlderStartNeverEndsANewerStop: the provider sends the START again, and the STOP was stored
// in between. It makes no difference whether both are stored at once.
func TestAnOlderStartNeverEndsANewerStop(t *testing.T) {
	t.Parallel()
	const unknown = -1
	l, subscribers := open(t), 0
	for name, test := range map[string]struct {
		words  []ledger.Inbound // as they are stored
		barred bool
	}{
		"a start after a stop": {
			[]ledger.Inbound{said("STOP", "a", 9, unknown), said("START", "a", 8, unknown)}, false,
		},
		"a start that arrived before the stop": {
			[]ledger.Inbound{said("STOP", "a", 8, unknown), said("START", "a", 9, unknown)}, true,
		},
		"a start that was sent before the stop": {
			[]ledger.Inbound{said("STOP", "a", 8, 9), said("START", "a", 1, 10)}, true,
		},
		"a start after a stop that arrived late": {
			[]ledger.Inbound{said("STOP", "a", 2, 9), said("START", "a", 1, 8)}, false,
		},
		"both within the same second": {
			[]ledger.Inbound{said("STOP", "a", 8, 9), said("START", "a", 7, 9)}, false,
		},
		"both within the same second, in the other order": {
			[]ledger.Inbound{said("STOP", "a", 7, 9), said("START", "a", 8, 9)}, true,
		},
		"an old start after a stop of unknown age": {
			[]ledger.Inbound{said("STOP", "a", 8, unknown), said("START", "a", 1, 9)}, true,
		},
		"a new start after a stop of unknown age": {
			[]ledger.Inbound{said("STOP", "a", 8, unknown), said("START", "a", 1, 7)}, false,
		},
		"a start of unknown age after a stop": {
			[]ledger.Inbound{said("STOP", "a", 8, 9), said("START", "a", 1, unknown)}, false,
		},
		"clocks of two providers": {
			[]ledger.Inbound{said("STOP", "a", 8, 20), said("START", "b", 1, 10)}, true,
		},
		"a clock that is ahead": {
			[]ledger.Inbound{said("STOP", "a", 8, unknown), said("START", "a", 9, 0)}, true,
		},
		"a stop that came again": {[]ledger.Inbound{said("STOP", "a",
			9, unknown), said("STOP", "a", 5, unknown), said("START", "a", 7, unknown)}, true},
		"a stop that came again by another channel": {[]ledger.Inbound{
			said("STOP", "a", 9, 9), said("STOP", "b", 5, 9), said("START", "a", 4, 7),
		}, true},
		"an older stop changes nothing about the newer one": {[]ledger.Inbound{said("STOP", "a",
			5, unknown), said("STOP", "a", 9, unknown), said("START", "a", 7, unknown)}, true},
		"a stop that comes late counts": {
			[]ledger.Inbound{said("START", "a", 5, unknown), said("STOP", "a", 9, unknown)}, true,
		},
		"a repeated start does not hide the newer one": {[]ledger.Inbound{said("STOP", "a",
			9, unknown), said("START", "a", 5, unknown), said("START", "a", 10, unknown)}, false},
		"a start, a stop and the repetition of the start": {[]ledger.Inbound{said("START",
			"a", 9, unknown), said("STOP", "a", 8, unknown), said("START", "a", 9, unknown)}, true},
		"a start that is repeated after the stop and a new one": {[]ledger.Inbound{said("STOP", "a",
			8, unknown), said("START", "a", 9, unknown), said("START", "a", 1, unknown)}, false},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " together ", together), func(t *testing.T) {
				subscribers++
				number := fmt.Sprintf("+4477009%05d", subscribers)
				words := slices.Clone(test.words)
				for i := range words {
					words[i].ID, words[i].From = fmt.Sprint(number, i), number
				}
				if together {
					record(t, l, words...)
				} else {
					for _, w := range words {
						record(t, l, w)
					}
				}
				got := barred(t, l, []ledger.Message{to(number, "shop", number)}, 0)
				if (len(got) > 0) != test.barred {
					t.Errorf("barred are %v, want %t", got, test.barred)
				}
			})
		}
	}
}

// A change by a person counts from its own time, whatever the subscriber sent before.
func TestAnOlderStartDoesNotEndWhatWasDecidedByHand(t *testing.T) {
	t.Parallel()
	l := open(t)
	optOut(t, l, byHand, subscriber)
	want(t, "start", record(t, l, said("START", "a", 1, -1)), ledger.InboxResult{Whole: 1})
	want(t, "by hand", optIn(t, l, byHand, subscriber), int64(1))
	record(t, l, said("STOP", "a", 0, -1))
	want(t, "by hand again", optIn(t, l, byHand, subscriber), int64(1))
}

// TestAStopIsNotLostBesideAStart: another process stores an older START when the STOP comes. The
// START would end the entry after the STOP has found it and before the STOP has updated its time.
func TestAStopIsNotLostBesideAStart(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	other := connect(t, ledger.Config{URL: rig.url})
	record(t, rig.l, said("STOP", "a", 9, -1))
	holding := raw(t, rig.url)
	execute(t, holding, `begin; select from dispatcher.opt_outs for update`)
	store := func(l *ledger.Ledger, in ledger.Inbound) chan error {
		return waiting(t, rig.db, func() error {
			_, err := l.Inbox.Record(t.Context(), []ledger.Inbound{in}, publish)
			return err
		})
	}
	start, stop := store(rig.l, said("START", "a", 5, -1)), store(other, said("STOP", "a", 1, -1))
	execute(t, holding, `commit`)
	for _, done := range []chan error{start, stop} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := barred(t, rig.l, []ledger.Message{to("m", "shop", subscriber)}, 0); len(got) != 1 {
		t.Error("the subscriber gets messages after a STOP")
	}
}

// TestKeywordsOfManyContend: concurrent calls put some people on the list and take others off, the
// same people in both orders, beside imports. There is no deadlock.
func TestKeywordsOfManyContend(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	ledgers := []*ledger.Ledger{rig.l, connect(t, ledger.Config{URL: rig.url})}
	numbers := make([]string, 60)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("+4477009%05d", i)
	}
	optOut(t, ledgers[0], byHand, numbers...)
	rounds := tier.Size(2, 20)
	var workers sync.WaitGroup
	for worker := range 6 {
		l := ledgers[worker%2]
		workers.Go(func() {
			for round := range rounds {
				if worker > 3 {
					if _, err := l.OptOuts.Add(t.Context(), byHand, numbers); err != nil {
						t.Error(err)
					}
					continue
				}
				var in []ledger.Inbound
				for i, number := range numbers {
					m := sms(fmt.Sprint(worker, round, i), []string{"STOP", "START"}[(i+worker)%2])
					m.From = number
					in = append(in, m)
				}
				if _, err := l.Inbox.Record(t.Context(), in, publish); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}
