package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// gradingFunction is a scoring service that scores candidates by their label grade. When it is
// broken, it answers with an error. It keeps the last request.
type gradingFunction struct {
	broken   atomic.Bool
	calls    atomic.Int64
	lastBody atomic.Pointer[string] // of the last request
}

func (f *gradingFunction) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls.Add(1)
	body, err := io.ReadAll(r.Body)
	text := string(body)
	f.lastBody.Store(&text)
	if f.broken.Load() || err != nil {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	var asked struct {
		Candidates []struct {
			Channel string             `json:"channel"`
			Labels  map[string]float64 `json:"labels"`
		} `json:"candidates"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type score struct {
		Channel string  `json:"channel"`
		Score   float64 `json:"score"`
	}
	var answer struct {
		Scores []score `json:"scores"`
	}
	for _, c := range asked.Candidates {
		answer.Scores = append(answer.Scores, score{c.Channel, c.Labels["grade"]})
	}
	_ = json.NewEncoder(w).Encode(answer) // fails if the dispatcher has closed the connection
}

// TestScoringFunctionPicksTheBestWorker: an HTTP service scores the channels. While it fails, the
// default scoring does, the record says why, and no message waits for the service.
func TestScoringFunctionPicksTheBestWorker(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const each = 60
	function := &gradingFunction{}
	server := httptest.NewServer(function)
	t.Cleanup(server.Close)
	channels := threeChannels("labels: {grade: 2, speed: 9}", "labels: {grade: 7, speed: 5}",
		"labels: {grade: 4, speed: 1}")
	s := newStage(t,
		stageConfig{channels: channels, route: "mode: best_worker, scoring: {function: \"" + server.URL +
			"/grade\", allow_private: true, batch: true, cache: 0s, deadline: 5s}"})
	s.runAll(1)
	s.bound(1)
	withSelectors := func(story string) []envelope.Message {
		all := messages(story, each)
		for i := range all {
			all[i].Selectors = []envelope.Selector{
				{Key: "speed", Operator: selector.GreaterThan, Value: selector.NumberValue(0.5)},
			}
		}
		return all
	}
	s.publish("bulk", withSelectors("graded"))
	s.settled(each)
	function.broken.Store(true)
	s.publish("bulk", withSelectors("ungraded"))
	s.settled(2 * each)

	for story, want := range map[string]string{"graded": "b", "ungraded": "a"} {
		n := s.count(`
			select count(*) from audit.messages where id like $1 || '-%' and first_choice = $2`,
			story, want)
		if n != each {
			t.Errorf("got %d of %d %s messages on the best channel %s: %v", n, each, story, want,
				s.firstChoices())
		}
	}
	n := s.count(`select count(*) from dispatcher.all_attempts where ranking->>'scoring' = 'function'`)
	if n != each {
		t.Errorf("got %d choices by the function, want %d", n, each)
	}
	n = s.count(`
		select count(*) from dispatcher.all_attempts where ranking->>'trouble' = 'function_status'`)
	if n != each {
		t.Errorf("got %d choices with a failed function, want %d", n, each)
	}
	lastBody := *function.lastBody.Load()
	if strings.Contains(lastBody, "9997") || strings.Contains(lastBody, "parcel") ||
		strings.Contains(lastBody, "graded-") {
		t.Errorf("the request to the function has a number, a text or an id: %s", lastBody)
	}
	if explained := s.command("explain", "ungraded-000003"); !strings.Contains(explained, "scor") {
		t.Errorf("explain does not name the scoring:\n%s", explained)
	}
	s.checkVerified(2 * each)
}
