package report

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
)

// choice returns an attempt that a ranking led to.
func choice(
	channel string, reason ledger.AttemptReason, ranking *decide.Ranking,
) ledger.AttemptRecord {
	a := attempt(channel, reason, outcomeAccepted, "")
	ranking.Version = 3
	a.Ranking = decide.AppendRanking(nil, ranking)
	return a
}

// scored returns a candidate of best worker.
func scored(channel string, score float64, reason string) decide.Ranked {
	r := ranked(channel, 0, reason)
	r.Score = &score
	return r
}

// assigned returns a candidate whose last message was this many seconds before ten.
func assigned(channel string, active, seconds int64) decide.Ranked {
	r := ranked(channel, active, "")
	r.LastAssigned = decide.Micros((ten.Unix() - seconds) * 1e6)
	return r
}

// undrawn returns a record of a route that does not draw.
func undrawn(attempts ...ledger.AttemptRecord) *ledger.Record {
	r := newRecord(ledger.Accepted, attempts...)
	r.Message.Plan.Draw, r.Message.Plan.Size, r.Message.Plan.KeyID = 0, 0, ""
	r.Message.Plan.FirstChoice = attempts[0].Channel
	return r
}

// modeRecord is a record with the mode of its route and, for best worker, the order of scores.
type modeRecord struct {
	mode      string
	ascending bool
	sticky    bool
	record    *ledger.Record
}

// recordsOfModes returns records of every mode and ranker for a golden file.
func recordsOfModes() map[string]modeRecord {
	out := map[string]modeRecord{
		"round-robin": {mode: "round_robin", record: undrawn(choice("b", ledger.ByFirstChoice,
			&decide.Ranking{
				By: "round_robin", Cursor: "a", Candidates: []decide.Ranked{
					ranked("b", 4, ""),
					ranked("c", 1, ""), ranked("a", 2, ""),
				},
			}))},
		"round-robin-first-turn": {
			mode: "round_robin",
			record: undrawn(choice("a", ledger.ByFirstChoice, &decide.Ranking{
				By: "round_robin", Candidates: []decide.Ranked{
					ranked("a", 0, ""),
					ranked("b", 0, ""),
					ranked("c", 0, ""),
				},
			})),
		},
		"round-robin-over-one": {
			mode: "round_robin",
			record: undrawn(choice("c", ledger.ByFirstChoice, &decide.Ranking{
				By: "round_robin", Cursor: "a", Candidates: []decide.Ranked{
					ranked("b", 4,
						"no_slot"),
					ranked("c", 1, ""), ranked("a", 2, ""),
				},
			})),
		},
		"longest-idle": {mode: "longest_idle", record: undrawn(choice("c", ledger.ByFirstChoice,
			&decide.Ranking{
				By: "load_ratio", Candidates: []decide.Ranked{
					assigned("c", 60, 420),
					assigned("a", 60, 300), ranked("b", 75, ""),
				},
			}))},
		"best-worker": {mode: "best_worker", record: undrawn(choice("b", ledger.ByFirstChoice,
			&decide.Ranking{
				By: "best_worker", Candidates: []decide.Ranked{
					scored("b", 0.7074, ""),
					scored("c", 0.675, ""), scored("a", 0.6667, ""),
				},
			}))},
		"best-worker-second": {
			mode: "best_worker",
			record: undrawn(choice("c", ledger.ByFirstChoice, &decide.Ranking{
				By: "best_worker", Candidates: []decide.Ranked{
					scored("b", 0.7074, "breaker_open"),
					scored("c", 0.675, ""), scored("a", 0.675, ""),
				},
			})),
		},
		"best-worker-lowest-expression": {
			mode: "best_worker", ascending: true,
			record: undrawn(choice("c", ledger.ByFirstChoice, &decide.Ranking{
				By: "best_worker", Scoring: "expression", Candidates: []decide.Ranked{scored("c",
					0.028,
					""), scored("a", 0.031, "")},
			})),
		},
		"best-worker-function-failed": {
			mode: "best_worker", ascending: true,
			record: undrawn(choice("c", ledger.ByFirstChoice, &decide.Ranking{
				By: "best_worker", Trouble: "function_timeout", Candidates: []decide.Ranked{scored("c",
					1, ""), scored("a", 0.5, "")},
			})),
		},
		"redraw": {mode: "weighted", record: newRecord(ledger.Accepted,
			choice("c", ledger.ByFallback, &decide.Ranking{
				By: "redraw", KeyID: "0a0b0c0d", Candidates: []decide.Ranked{
					ranked("a", 0,
						"no_slot"),
					ranked("c", 0, ""), ranked("b", 0, ""),
				},
			}))},
		"redraw-the-last": {mode: "weighted", record: newRecord(ledger.Accepted,
			choice("c", ledger.ByFallback, &decide.Ranking{
				By: "redraw", KeyID: "0a0b0c0d", Candidates: []decide.Ranked{
					ranked("a", 0,
						"no_slot"),
					ranked("b", 0, "no_slot"), ranked("c", 0, ""),
				},
			}))},
	}
	out["sticky"] = modeRecord{
		mode: "weighted", sticky: true,
		record: newRecord(ledger.Accepted,
			attempt("a", ledger.ByFirstChoice, outcomeAccepted, "")),
	}
	out["order"] = modeRecord{mode: "order", record: undrawn(choice("a", ledger.ByFirstChoice,
		&decide.Ranking{By: "order", More: 2, Candidates: []decide.Ranked{ranked("a", 0, "")}}))}
	second := choice("b", ledger.ByFirstChoice, &decide.Ranking{
		By: "order", More: 1,
		Candidates: []decide.Ranked{ranked("a", 0, "breaker_open"), ranked("b", 0, "")},
	})
	second.Outcome, second.Code = outcomeRefused, "dial"
	second.Segments, second.PriceMicros, second.Reference = 0, 0, ""
	out["order-second-then-third"] = modeRecord{mode: "order", record: undrawn(second,
		choice("c", ledger.ByFallback, &decide.Ranking{
			By: "order", Attempts: 1, Candidates: []decide.Ranked{
				ranked("a", 0, "breaker_open"), ranked("b", 0, "already_tried"), ranked("c", 0, ""),
			},
		}),
	)}
	out["state-mode-then-fallback"] = modeRecord{mode: "round_robin", record: undrawn(
		attempt("a", ledger.ByFirstChoice, outcomeRefused, "dial"),
		choice("c", ledger.ByFallback, &decide.Ranking{
			By: "load_ratio",
			Candidates: []decide.Ranked{
				ranked("a", 0, "already_tried"), ranked("c", 40, ""), ranked("b", 80, ""),
			},
		}),
	)}
	return out
}

// with returns the document of a record.
func (s *modeRecord) with(t *testing.T) *config.Routing {
	doc := london(t)
	route := &doc.Routes[0]
	route.Mode, route.Sticky = config.Mode(s.mode), s.sticky
	route.Scoring = config.Scoring{Ascending: s.ascending}
	return doc
}

// recordsWithSelectors returns records with a selector that is valid for two seconds.
func recordsWithSelectors() map[string]*ledger.Record {
	envelope := []byte(`{"id":"order-7731-otp","to":"+447700900123","text":"Your code is 123456",
		"selectors":[{"key":"quality","operator":"greaterThanEqual","value":5,"expires_after":"2s"},
			{"key":"language","operator":"equal","value":"en"}]}`)
	waited := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeAccepted, ""))
	waited.Message.Envelope = envelope
	waited.Message.Waits = []ledger.Wait{{Reason: "selector", For: 2 * time.Second}}
	waited.Seen = encode("load_ratio", ranked("a", 0, "selector"), ranked("c", 40, "selector"))
	waited.Attempts[0].ClaimedAt = ten.Add(2 * time.Second)
	waited.Attempts[0].SettledAt = ten.Add(2100 * time.Millisecond)

	waits := newRecord(ledger.Waiting)
	waits.Message.Envelope, waits.Message.Reason = envelope, "selector"
	waits.Message.NextAt, waits.Seen = ten.Add(2*time.Second), waited.Seen
	return map[string]*ledger.Record{"selector-expired": waited, "waiting-for-a-selector": waits}
}

func TestOnlyARouteThatDrawsHasADraw(t *testing.T) {
	t.Parallel()
	for name, one := range recordsOfModes() {
		e := explain(t, one.record, one.with(t))
		drawn := one.mode == "weighted"
		if (e.Draw != nil) != drawn || (e.Size != nil) != drawn || (e.Interval != nil) != drawn {
			t.Errorf("%s: draw %v of %v", name, e.Draw, e.Size)
		}
	}
}

// TestExplanationOfAThousandChannelsStaysReadable: the text names only the first of them.
func TestExplanationOfAThousandChannelsStaysReadable(t *testing.T) {
	t.Parallel()
	var weights []string
	for i := range 1000 {
		weights = append(weights, "c"+strconv.Itoa(i), "1")
	}
	doc := document("default", weights...)
	record := newRecord(ledger.Accepted, attempt("c17", ledger.ByFirstChoice, outcomeAccepted, ""))
	record.Message.Plan.Size, record.Message.Plan.FirstChoice = 1000, "c17"
	explanation, err := explained(record, doc)
	if err != nil || len(explanation.Text) > 600 {
		t.Errorf("%v, %d characters: %s", err, len(explanation.Text), explanation.Text)
	}
}

func TestCandidatesBehindTheChosenOneAreOutranked(t *testing.T) {
	t.Parallel()
	one := recordsOfModes()["best-worker-second"]
	explanation, err := explained(one.record, one.with(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Candidate{
		{Channel: "b", Score: new(0.7074), Eligible: new(false), Reason: "breaker_open"},
		{Channel: "c", Score: new(0.675), Eligible: new(true)},
		{Channel: "a", Score: new(0.675), Reason: "outranked"},
	}
	if !cmp.Equal(explanation.Candidates, want) || explanation.RankedBy != "best_worker" ||
		explanation.FirstChoice != "c" {
		t.Error(cmp.Diff(want, explanation.Candidates))
	}
	raw, err := json.Marshal(explanation)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	if draw, there := keys["draw"]; !there || draw != nil || keys["ranked_by"] != "best_worker" {
		t.Errorf("got %s", raw)
	}
}
