package decide

import (
	"fmt"
	"testing"
	"time"

	"dispatcher/selector"
)

// TestAnAnswerIsOfItsRowRoutingAndQuestion: for another row, version or number of valid selectors
// the function is asked again.
func TestAnAnswerIsOfItsRowRoutingAndQuestion(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	for name, tc := range map[string]struct {
		row       int64
		version   int64
		selectors int
		lacks     bool
	}{
		"its own":            {7, 7, 1, false},
		"of another row":     {8, 7, 1, true},
		"of another routing": {7, 6, 1, true},
		"a selector expired": {7, 7, 2, true},
	} {
		task := w.fresh()
		task.Row.Seq, task.msg.Selectors = 7, []selector.Selector{qualityAbove(5, time.Minute)}
		answer := RowScores{Version: tc.version, Selectors: tc.selectors, Scores: &Scores{}}
		p := &Plan{Routing: w.routing}
		lacks := p.lacksAnswer(task, noon, map[int64]RowScores{tc.row: answer})
		if lacks != tc.lacks || (task.Scores == nil) != tc.lacks {
			t.Errorf("%s: lacks an answer: %v, scores %v", name, lacks, task.Scores)
		}
	}
}

// TestTheNumberOfSelectorsIdentifiesTheQuestionOfARow proves what lacksAnswer relies on: at two
// times, the questions for one row under one routing are equal exactly when the same number of
// selectors is valid.
func TestTheNumberOfSelectorsIdentifiesTheQuestionOfARow(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	task := w.fresh()
	task.Row.ReceivedAt = noon
	for _, after := range []time.Duration{
		0, 3 * time.Second, time.Second, 2 * time.Second,
		time.Second,
	} {
		task.msg.Selectors = append(task.msg.Selectors, qualityAbove(float64(after), after))
	}
	questions := map[int]string{}
	for age := time.Duration(0); age < 5*time.Second; age += 100 * time.Millisecond {
		q := newQuestion(w.routing, task, noon.Add(age))
		key := string(q.AppendKey(nil))
		if before, known := questions[len(q.Selectors)]; known && before != key {
			t.Errorf("after %s: another question with %d selectors", age, len(q.Selectors))
		}
		questions[len(q.Selectors)] = key
	}
	if len(questions) != 4 {
		t.Errorf("%d questions, want 4", len(questions))
	}
}

// BenchmarkLacksAnswer measures the check of a due row of a route with a function, which runs while
// channels are locked.
func BenchmarkLacksAnswer(b *testing.B) {
	for _, channels := range []int{3, 20, 100} {
		b.Run(fmt.Sprint(channels), func(b *testing.B) {
			w := inMode(b, BestWorkerMode, LoadRatio)
			scoredByEndpoint(w.routing)
			for len(w.routing.Channels) < channels {
				w.routing.Routes[0].Members = append(w.routing.Routes[0].Members,
					len(w.routing.Channels))
				w.routing.Channels = append(w.routing.Channels, w.routing.Channels[0])
			}
			task := w.fresh()
			task.Row.Seq, task.msg.Selectors = 7, []selector.Selector{qualityAbove(5, time.Minute)}
			p := &Plan{Routing: w.routing}
			answers := map[int64]RowScores{7: {
				Version: w.routing.Version, Selectors: 1,
				Scores: &Scores{},
			}}
			task.Row.ReceivedAt = noon
			b.ReportAllocs()
			for b.Loop() {
				if p.lacksAnswer(task, noon, answers) {
					b.Fatal("the answer was not found")
				}
			}
		})
	}
}
