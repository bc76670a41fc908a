package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
)

// equalPortions gives each channel the same portion, and enough senders if none are given.
func equalPortions(channels ...inFlight) []inFlight {
	open := 0
	for i := range channels {
		if !channels[i].closed {
			open++
		}
	}
	for i := range channels {
		f := &channels[i]
		if !f.closed {
			f.portion = 1 / float64(open)
		}
		if f.senders == 0 {
			f.senders = 500
		}
	}
	return channels
}

// TestRooms: of 400 slots, each of three equal channels has a share of 66 and a portion of 132.
func TestRooms(t *testing.T) {
	t.Parallel()
	const plenty = 10_000 // recent answers: for more than a channel may hold
	idle, busy := inFlight{}, inFlight{answered: plenty}
	silent := func(held int) inFlight {
		return inFlight{held: held, silent: held}
	}
	type bound struct {
		most int // for the first lane there, while no other channel claims
		late bool
	}
	for name, tc := range map[string]struct {
		channels []inFlight
		want     []bound
	}{
		"idle channels have their shares": {
			equalPortions(idle, idle, idle),
			[]bound{{66, false}, {66, false}, {66, false}},
		},
		"of which nothing is known": {
			equalPortions(inFlight{unknown: true}, idle, idle),
			[]bound{{268, false}, {66, false}, {66, false}},
		},
		"one that answers, alone": {
			equalPortions(busy, idle, idle),
			[]bound{{268, false}, {66, false}, {66, false}},
		},
		"it may have what it answers": {
			equalPortions(inFlight{answered: 50}, idle, idle),
			[]bound{{100, false}, {66, false}, {66, false}},
		},
		"all lent to one": {equalPortions(inFlight{held: 268, answered: plenty}, busy,
			busy), []bound{{268, false}, {66, false}, {66, false}}},
		"a silent one keeps its share": {
			equalPortions(silent(90), busy, busy),
			[]bound{{90, true}, {244, false}, {244, false}},
		},
		"the next is silent, too": {
			equalPortions(silent(90), silent(90), busy),
			[]bound{{90, true}, {90, true}, {220, false}},
		},
		"silent for a moment": {
			equalPortions(inFlight{held: 90}, busy, busy),
			[]bound{{90, false}, {244, false}, {244, false}},
		},
		"few lost answers": {equalPortions(inFlight{held: 100, overdue: 40, answered: 50},
			idle, idle), []bound{{140, false}, {66, false}, {66, false}}},
		"lost answers fill its share": {equalPortions(inFlight{held: 100, overdue: 66, answered: 50},
			idle, idle), []bound{{100, true}, {66, false}, {66, false}}},
		"one lost answer says nothing": {
			equalPortions(inFlight{held: 1, silent: 1}, idle, idle),
			[]bound{{66, false}, {66, false}, {66, false}},
		},
		"a quarter of few senders": {equalPortions(inFlight{
			held: 9, silent: 3, senders: 10,
			usual: time.Second,
		}, idle, idle), []bound{{30, true}, {66, false}, {66, false}}},
		"a queue of two seconds": {
			equalPortions(inFlight{
				held: 60, answered: plenty,
				usual: 100 * time.Millisecond, senders: 5,
			}, idle, idle),
			[]bound{{105, true}, {66, false}, {66, false}},
		},
		"few senders, and quick": {equalPortions(inFlight{
			answered: plenty, usual: firstGuess,
			senders: 2,
		}, idle, idle), []bound{{202, true}, {66, false}, {66, false}}},
		"slow by nature is not late": {equalPortions(inFlight{
			held: 70, answered: 90,
			usual: slowAnswers,
		}, idle, idle), []bound{{180, false}, {66, false}, {66, false}}},
		"a single channel": {equalPortions(silent(400)), []bound{{400, false}}},
		"the others are closed": {
			equalPortions(silent(300), inFlight{closed: true, held: 50}),
			[]bound{{400, false}, {50, false}},
		},
		"shares follow the weights": {
			[]inFlight{
				{portion: .6, senders: 500, unknown: true},
				{portion: .3, senders: 500},
				{portion: .1, senders: 500, answered: plenty},
			},
			[]bound{{300, false}, {60, false}, {220, false}},
		},
		"most of many are silent": {
			equalPortions(append(slicesOf(7, silent(25)), busy)...),
			append(slicesOf(7, bound{25, true}), bound{225, false}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []bound
			for i, f := range tc.channels {
				r := &rooms(tc.channels, 400)[i]
				most := f.held
				for ; !f.closed && r.Has(true); most++ {
					r.Take(true)
				}
				got = append(got, bound{most, r.PassOver})
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(bound{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func slicesOf[T any](n int, of T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = of
	}
	return out
}

func TestPartOfARoomIsKeptForTheFirstLane(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held, lent         int // by the channel and by another one
		first, other, loan bool
	}{
		"its share, of 100":             {94, 0, true, true, false},
		"the kept part of its share":    {95, 300, true, false, false},
		"all of its share":              {100, 300, false, false, false},
		"above it, something is left":   {150, 0, true, true, true},
		"above it, the kept part left":  {150, 245, true, false, true},
		"above it, and nothing is left": {150, 250, false, false, true},
	} {
		f := inFlight{held: tc.held, senders: 500, portion: .5}
		if tc.loan {
			f.answered = 500
		}
		other := inFlight{held: tc.lent, senders: 500, portion: .5, answered: 500}
		each := rooms([]inFlight{f, other}, 400)
		if r := each[0]; r.Has(true) != tc.first || r.Has(false) != tc.other {
			t.Errorf("%s: %+v of %+v", name, r, *r.Spare)
		}
	}
}

// TestWhatWaitsForAChannelIsCounted: by all processes together, and only while something waits.
func TestWhatWaitsForAChannelIsCounted(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		r.Channels[0].State, r.Channels[1].State = decide.Draining, decide.Draining
	})
	answer := p.holdAnswers(t, "c", "")
	p.handle(t, jobsNamed("m", 900))
	waiting := p.counts(t, byState)["waiting"]
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	each, _ := p.rooms(p.routing)
	if each[0].Waiting != 0 || each[2].Waiting == 0 || each[2].Waiting > waiting {
		t.Errorf("%d messages wait, counted were %d and %d", waiting, each[0].Waiting, each[2].Waiting)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": 900})
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	if each, _ := p.rooms(p.routing); each[2].Waiting != 0 {
		t.Errorf("got %d waiting messages", each[2].Waiting)
	}
}

// TestNoChannelTakesTheShareOfAnother: in any order of claims and answers, a channel has more than
// its share only out of what is not reserved for the shares of the others. A failing channel gets
// no more than its share. A channel that answers may have all that is lent.
func TestNoChannelTakesTheShareOfAnother(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 600).Draw(t, "total")
		channels := make([]inFlight, rapid.IntRange(2, 6).Draw(t, "channels"))
		for i := range channels {
			channels[i].senders = rapid.IntRange(1, 600).Draw(t, "senders")
			channels[i].portion = 1 / float64(len(channels))
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			f := &channels[rapid.IntRange(0, len(channels)-1).Draw(t, "channel")]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				f.held -= rapid.IntRange(0, f.held).Draw(t, "answers")
				f.answered = rapid.IntRange(0, 600).Draw(t, "answered")
				f.overdue, f.silent = min(f.overdue, f.held), 0
			case 1:
				f.overdue = rapid.IntRange(0, min(f.held, f.senders)).Draw(t, "overdue")
				f.silent = rapid.IntRange(0, f.senders).Draw(t, "silent")
			case 2:
				f.usual = rapid.SampledFrom([]time.Duration{
					0, 300 * time.Millisecond,
					time.Second,
				}).Draw(t, "usual")
				f.unknown = rapid.Bool().Draw(t, "unknown")
			case 3:
				claimSome(t, channels, total)
			}
		}
	})
}

// claimSome claims as one claim does, alternating between channels.
func claimSome(t *rapid.T, channels []inFlight, total int) {
	each := rooms(channels, total)
	idle := true
	for i := range channels {
		idle = idle && channels[i].held == 0
		f, r := &channels[i], &each[i]
		if share := f.share(total); f.held < min(share, f.sendable()) && !r.Has(true) {
			t.Fatalf("channel %d has no room below its share of %d: %+v", i, share, f)
		}
	}
	for range rapid.IntRange(0, total).Draw(t, "messages") {
		c := rapid.IntRange(0, len(channels)-1).Draw(t, "on")
		first := rapid.Bool().Draw(t, "first lane")
		f, r := &channels[c], &each[c]
		if !r.Has(first) {
			continue
		}
		r.Take(first)
		f.held++
		share, reserved := f.share(total), 0
		for i := range channels {
			reserved += max(channels[i].share(total), channels[i].held)
		}
		switch {
		case f.held > share && f.fails(share):
			t.Fatalf("failing channel %d holds %d, its share is %d", c, f.held, share)
		case f.held > share && reserved > total:
			t.Fatalf("channel %d holds %d of %d, and with the others' shares that is %d", c, f.held,
				total, reserved)
		case f.held > max(f.sendable(), 1):
			t.Fatalf("channel %d holds %d and clears %d", c, f.held, f.sendable())
		}
	}
	if !idle {
		return
	}
	for i := range channels { // alone, it may have all that is lent
		alone := make([]inFlight, len(channels))
		for j := range alone {
			alone[j].portion, alone[j].senders = channels[j].portion, total
		}
		alone[i].answered = total
		most, others := 0, 0
		for j := range alone {
			if j != i {
				others += alone[j].share(total)
			}
		}
		for r := rooms(alone, total); r[i].Has(true); most++ {
			r[i].Take(true)
		}
		if want := max(total-others, alone[i].share(total)); most != want {
			t.Fatalf("alone, channel %d may have %d of %d, and the others' shares are %d", i, most,
				total, others)
		}
	}
}

// TestNoClaimWaitsForSlowSlots: slots of a channel that answers more slowly than a claim gathers
// slots do not become free in that time.
func TestNoClaimWaitsForSlowSlots(t *testing.T) {
	t.Parallel()
	channels := equalPortions(
		inFlight{held: 40, overdue: 3, answered: 40, usual: 5 * time.Millisecond},
		inFlight{held: 30, answered: 40, usual: 2 * gatherTime},
		inFlight{held: 20, silent: 20, usual: 5 * time.Millisecond},
	)
	if n := stuck(channels, rooms(channels, 400)); n != 3+30+20 {
		t.Errorf("%d slots do not come free soon", n)
	}
}

// TestNoClaimWaitsForAQuietChannel: a channel that has just answered will have room again in a
// moment. A channel that takes a second, or has not answered for some time, will not.
func TestNoClaimWaitsForAQuietChannel(t *testing.T) {
	t.Parallel()
	channels := equalPortions(
		inFlight{held: 400, answered: 40, usual: 300 * time.Millisecond, quiet: time.Millisecond},
		inFlight{held: 400, answered: 40, usual: 300 * time.Millisecond, quiet: quietAfter},
		inFlight{held: 400, answered: 40, usual: slowAnswers, quiet: time.Millisecond},
	)
	each := rooms(channels, 400)
	if got := []bool{each[0].NoWait, each[1].NoWait, each[2].NoWait}; !cmp.Equal(got,
		[]bool{false, true, true}) {
		t.Errorf("does not wait for any of %v", got)
	}
}
