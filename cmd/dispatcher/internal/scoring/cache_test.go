package scoring

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
)

func numbered(n int) key {
	var k key
	binary.BigEndian.PutUint64(k[:], uint64(n))
	return k
}

func TestTheCacheStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	c, now := newCache(), time.Now()
	c.most = 1000
	for i := range 10_000 {
		c.put(numbered(i), make([]float64, 4), "", now, time.Hour)
		if cost := (len(c.young) + len(c.old)) * (4 + answerCost); cost > 2*c.most {
			t.Fatalf("%d answers: got cost %d", i, cost)
		}
	}
	if _, _, ok := c.get(numbered(0), now); ok {
		t.Error("the first answer is still there")
	}
	if _, _, ok := c.get(numbered(9_999), now); !ok {
		t.Error("the last answer is not there")
	}
}

func TestTheCacheKeepsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	c, now := newCache(), time.Now()
	c.most = 1000
	for i := range 10_000 {
		c.put(numbered(i), make([]float64, 4), "", now, time.Hour)
		if _, _, ok := c.get(numbered(0), now); !ok {
			t.Fatalf("dropped after %d others", i)
		}
	}
}

func TestPuttingAnAnswerAgainDoesNotCostAgain(t *testing.T) {
	t.Parallel()
	c, now := newCache(), time.Now()
	for range 10_000 {
		c.put(numbered(0), make([]float64, 4), "", now, time.Hour)
	}
	if c.cost != 4+answerCost {
		t.Errorf("one answer: got cost %d", c.cost)
	}
}

func TestOldFunctionsAreDropped(t *testing.T) {
	t.Parallel()
	s, now := newFunctionStates(), time.Now()
	for i := range 1000 {
		now = now.Add(time.Second)
		s.end(identity{url: string(rune('a' + i))}, []string{"function_timeout", ""}[i%2], now,
			now)
	}
	if len(s.of) > int((forgetAfter+pauseTime)/time.Second)+1 {
		t.Errorf("%d functions are remembered", len(s.of))
	}
}

// BenchmarkScoresFromTheCache measures a message whose question was asked before.
func BenchmarkScoresFromTheCache(b *testing.B) {
	c, err := New(Config{Registry: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	f, q := &decide.Function{URL: "http://scores.example.com/"}, questionOf(20)
	c.cache.put(keyOf(f, q), make([]float64, 20), "", time.Now(), time.Hour)
	for b.Loop() {
		if got := c.Scores(b.Context(), f, q); got.Trouble != "" {
			b.Fatal(got.Trouble)
		}
	}
}
