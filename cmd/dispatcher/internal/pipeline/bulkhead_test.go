package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/internal/tier"
)

func TestRooms(t *testing.T) {
	t.Parallel()
	prompt := func(held int) underWay { return underWay{held: held, senders: 500} }
	overdue := func(held int) underWay { return underWay{held: held, overdue: held, senders: 500} }
	type bound struct {
		most int // held and left, kept for the first lane included
		late bool
	}
	for name, tc := range map[string]struct {
		channels []underWay
		want     []bound
	}{
		"nothing under way":         {[]underWay{prompt(0), prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"a single channel":          {[]underWay{overdue(400)}, []bound{{400, false}}},
		"the others are closed":     {[]underWay{overdue(400), {closed: true}}, []bound{{400, false}, {400, false}}},
		"prompt and full":           {[]underWay{prompt(300), prompt(40), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"one stopped answering":     {[]underWay{overdue(300), prompt(40), prompt(0)}, []bound{{133, true}, {75, false}, {75, false}}},
		"the next one did, too":     {[]underWay{overdue(300), overdue(75), prompt(0)}, []bound{{133, true}, {75, true}, {18, false}}},
		"few lost answers":          {[]underWay{{held: 100, overdue: 33, senders: 500}, prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"many lost answers":         {[]underWay{{held: 100, overdue: 34, senders: 500}, prompt(0), prompt(0)}, []bound{{133, true}, {225, false}, {225, false}}},
		"a quarter of few senders":  {[]underWay{{held: 100, overdue: 3, senders: 10}, prompt(0), prompt(0)}, []bound{{10, true}, {225, false}, {225, false}}},
		"slow, and little of it":    {[]underWay{{held: 1, usual: time.Second, senders: 500}, prompt(0), prompt(0)}, []bound{{133, true}, {299, false}, {299, false}}},
		"a queue of two seconds":    {[]underWay{{held: 60, usual: 100 * time.Millisecond, senders: 5}, prompt(0), prompt(0)}, []bound{{105, true}, {255, false}, {255, false}}},
		"few senders and quick":     {[]underWay{{held: 60, usual: firstGuess, senders: 2}, prompt(0), prompt(0)}, []bound{{202, true}, {255, false}, {255, false}}},
		"one sender, very quick":    {[]underWay{{held: 60, senders: 1}, prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"few senders, alone":        {[]underWay{{held: 60, usual: 100 * time.Millisecond, senders: 5}}, []bound{{400, false}}},
		"one of many is late":       {append(slicesOf(19, prompt(0)), overdue(200)), append(slicesOf(19, bound{150, false}), bound{50, true})},
		"everything, held by three": {[]underWay{overdue(200), overdue(150), overdue(50)}, []bound{{133, true}, {112, true}, {37, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []bound
			for i, r := range rooms(tc.channels, 400) {
				got = append(got, bound{tc.channels[i].held + r.Left + r.Kept, r.Late})
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
	each := rooms([]underWay{{held: 380, senders: 500}, {senders: 500}}, 533) // bound: 399, of which 19 are kept
	if full := each[0]; full.Left > 0 || full.Left+full.Kept <= 0 {
		t.Errorf("%+v", full)
	}
	each = rooms([]underWay{{held: 399, senders: 500}, {senders: 500}}, 533)
	if full := each[0]; full.Left+full.Kept > 0 {
		t.Errorf("%+v", full)
	}
}

// TestWhatWaitsForAChannelIsCounted, by all processes together, and only while something waits.
func TestWhatWaitsForAChannelIsCounted(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		wide(r)
		r.Channels[0].State, r.Channels[1].State = decide.Draining, decide.Draining
	})
	answer := p.silence(t, "c", "")
	p.handle(t, jobsNamed("m", 900))
	waiting := p.counts(t, byState)["waiting"]
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	each, _ := p.rooms(p.routing)
	if each[0].Queue != 0 || each[2].Queue == 0 || each[2].Queue > waiting {
		t.Errorf("%d messages wait, counted were %d and %d", waiting, each[0].Queue, each[2].Queue)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": 900})
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	if each, _ := p.rooms(p.routing); each[2].Queue != 0 {
		t.Errorf("%d messages are said to wait", each[2].Queue)
	}
}

// TestNoMoreUnderWayThanTheBounds: whatever channels do and in whatever order claims and answers
// come, no channel holds more than its bound when it takes, and channels without delay are never
// bounded below three quarters of the total.
func TestNoMoreUnderWayThanTheBounds(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 600).Draw(t, "total")
		channels := make([]underWay, rapid.IntRange(1, 6).Draw(t, "channels"))
		for i := range channels {
			channels[i].senders = rapid.IntRange(1, 600).Draw(t, "senders")
		}
		held := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := rapid.IntRange(0, len(channels)-1).Draw(t, "channel")
			u := &channels[c]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // answers
				n := rapid.IntRange(0, u.held).Draw(t, "answers")
				u.held, held = u.held-n, held-n
				u.overdue = min(u.overdue, u.held)
			case 1:
				u.overdue = rapid.IntRange(0, min(u.held, u.senders)).Draw(t, "overdue")
			case 2:
				u.usual = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, time.Second}).Draw(t, "usual")
			case 3: // a claim
				each := rooms(channels, total)
				n := min(max(each[c].Left+each[c].Kept, 0), total-held)
				u.held, held = u.held+n, held+n
				if most := total * mostOfRest / restParts; len(channels) > 1 && n > 0 && u.held > max(most, 1) {
					t.Fatalf("channel %d holds %d of %d", c, u.held, total)
				}
				share := max(total/len(channels), total/leastShare, 1)
				most := max(u.clears(), 1)
				if u.late(share) {
					most = min(share, u.senders)
				}
				if len(channels) > 1 && n > 0 && u.held > most {
					t.Fatalf("late channel %d holds %d of %d", c, u.held, total)
				}
			}
			anyLate := false
			each := rooms(channels, total)
			for i := range each {
				anyLate = anyLate || each[i].Late
			}
			for i := range each {
				if most := max(total*mostOfRest/restParts, 1); !anyLate && channels[i].held+each[i].Left+each[i].Kept < most {
					t.Fatalf("channel %d is bounded to %d of %d though all are prompt", i, channels[i].held+each[i].Left+each[i].Kept, total)
				}
			}
		}
		if held > total {
			t.Fatalf("%d of %d are under way", held, total)
		}
	})
}
