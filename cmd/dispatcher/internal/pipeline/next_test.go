package pipeline

import (
	"slices"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
)

// TestTheNextJobsMayComeOnceTheLastAreDecided: not while jobs wait for the claim after this one,
// and before the last claim has written. Duplicates within the jobs are decided last.
func TestTheNextJobsMayComeOnceTheLastAreDecided(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	size := p.slots.size()
	for _, c := range []struct {
		name    string
		jobs    int
		twice   bool
		written int64 // when next is called
	}{
		{"one claim", 10, false, 0},
		{"two claims", size + 10, false, int64(size)},
		{"duplicates", 10, true, 10},
	} {
		jobs := jobsNamed(c.name, c.jobs)
		if c.twice {
			jobs = slices.Concat(jobs, jobs)
		}
		before := p.counts(t, `select 'n', count(*) from dispatcher.messages`)["n"]
		var written []int64
		if err := p.Handle(t.Context(), jobs, func() {
			n := p.counts(t, `select 'n', count(*) from dispatcher.messages`)["n"]
			written = append(written, n-before)
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(written, []int64{c.written}) {
			t.Errorf("%s: when next was called, %d messages were written, want %d once",
				c.name, written, c.written)
		}
	}
}

// TestClaimsOfALaneThatOverlap send each message once and exceed no limit, although the second of
// two begins while the first is written. They have messages in common.
func TestClaimsOfALaneThatOverlap(t *testing.T) {
	t.Parallel()
	const batches, size, most = 20, 50, 300
	limits := []admission.Limit{{Window: admission.Day, Max: most / 3}}
	p := setup(t, func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].Limits = limits
		}
	})
	limited := *p.routing
	limited.Version = p.applyRouting(t, limits)
	if err := p.Apply(&limited, nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, batches)
	for i := range batches {
		jobs := slices.Concat(jobsNamed(string(rune('a'+i)), size), jobsNamed("every", 10))
		decided := make(chan struct{}, 1)
		go func() {
			done <- p.Handle(t.Context(), jobs, func() { decided <- struct{}{} })
		}()
		select {
		case <-decided:
		case <-time.After(tier.LongestWait):
			t.Fatal("a claim has not decided")
		}
	}
	for range batches {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	p.eventually(t, byState,
		map[string]int64{"accepted": most, "waiting": batches*size + 10 - most})
	sent := map[string]int{}
	for _, c := range p.channels {
		for _, submit := range c.submits() {
			sent[submit.ID]++
		}
	}
	if len(sent) != most {
		t.Errorf("%d messages were sent, want %d", len(sent), most)
	}
	for id, n := range sent {
		if n > 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}
