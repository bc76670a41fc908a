package scoring

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
)

func TestAnAnswerIsTakenOnlyWhenEachCandidateHasOneFiniteScore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []float64
		word string
	}{
		"in order": {
			`{"scores":[{"channel":"c0","score":0.25},{"channel":"c1","score":-3}]}`,
			[]float64{0.25, -3},
			"",
		},
		"in another order": {
			`{"scores":[{"channel":"c1","score":1e2},{"channel":"c0","score":0}]}`,
			[]float64{0, 100},
			"",
		},
		"with space around": {
			" " +
				"\n" + `{"scores":[{"score":1,"channel":"c0"},{"channel":"c1","score":2}]}` + "\n ",
			[]float64{1, 2},
			"",
		},
		"nothing":         {``, nil, decide.FunctionInvalid},
		"space":           {"  \n", nil, decide.FunctionInvalid},
		"null":            {`null`, nil, decide.FunctionInvalid},
		"an empty object": {`{}`, nil, decide.FunctionInvalid},
		"a list": {
			`[{"channel":"c0","score":1},{"channel":"c1","score":2}]`, nil,
			decide.FunctionInvalid,
		},
		"cut off": {
			`{"scores":[{"channel":"c0","score":0.25}`, nil,
			decide.FunctionInvalid,
		},
		"something behind": {
			`{"scores":[{"channel":"c0","score":1},{"channel":"c1","score":2}]}{}`, nil,
			decide.FunctionInvalid,
		},
		"an unknown key": {
			`{"scores":[{"channel":"c0","score":1},{"channel":"c1","score":2}],"took":3}`, nil,
			decide.FunctionInvalid,
		},
		"an unknown channel": {
			`{"scores":[{"channel":"c0","score":1},{"channel":"x","score":2}]}`,
			nil, decide.FunctionInvalid,
		},
		"a channel twice": {
			`{"scores":[{"channel":"c0","score":1},{"channel":"c0","score":2},{"channel":"c1","score":2}]}`,
			nil, decide.FunctionInvalid,
		},
		"no channel": {
			`{"scores":[{"score":1},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionInvalid,
		},
		"a score that is a word": {
			`{"scores":[{"channel":"c0","score":"high"},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionInvalid,
		},
		"a score that is a text": {
			`{"scores":[{"channel":"c0","score":"1"},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionInvalid,
		},
		"a score that is true": {
			`{"scores":[{"channel":"c0","score":true},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionInvalid,
		},
		"a page of HTML": {`<html>NaN</html>`, nil, decide.FunctionInvalid},
		"too few": {
			`{"scores":[{"channel":"c1","score":2}]}`, nil,
			decide.FunctionTooFew,
		},
		"none": {`{"scores":[]}`, nil, decide.FunctionTooFew},
		"NaN as a text": {
			`{"scores":[{"channel":"c0","score":"NaN"},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionNotFinite,
		},
		"infinity as a text": {
			`{"scores":[{"channel":"c0","score":"-Infinity"},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionNotFinite,
		},
		"NaN as Python writes it": {`{"scores": [{"channel": "c0", "score": NaN}, {"channel": ` +
			`"c1", "score": 2}]}`, nil, decide.FunctionNotFinite},
		"infinity as Python does": {`{"scores": [{"channel": "c0", "score": Infinity}, ` +
			`{"channel": "c1", "score": 2}]}`, nil, decide.FunctionNotFinite},
		"minus infinity likewise": {`{"scores": [{"channel": "c0", "score": -Infinity}, ` +
			`{"channel": "c1", "score": 2}]}`, nil, decide.FunctionNotFinite},
		"null, JavaScript's NaN": {
			`{"scores":[{"channel":"c0","score":null},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionNotFinite,
		},
		"undefined, thus left out": {
			`{"scores":[{"channel":"c0"},{"channel":"c1","score":2}]}`,
			nil, decide.FunctionNotFinite,
		},
		"beyond a float64": {
			`{"scores":[{"channel":"c0","score":1e999},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionNotFinite,
		},
		"beyond it below": {
			`{"scores":[{"channel":"c0","score":-1e999},{"channel":"c1","score":2}]}`, nil,
			decide.FunctionNotFinite,
		},
	} {
		got := make([]float64, 2)
		word := decode([]byte(tc.text), questionOf(2).Candidates, got)
		if word != tc.word {
			t.Errorf("%s: %q, want %q", name, word, tc.word)
		} else if word == "" && !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// FuzzDecode looks for an answer that is accepted although a score is missing or not finite.
func FuzzDecode(f *testing.F) {
	f.Add(`{"scores":[{"channel":"c0","score":0.25},{"channel":"c1","score":-3}]}`)
	f.Add(`{"scores":[{"channel":"c0","score":1e999},{"channel":"c1","score":"NaN"}]}`)
	f.Add(`{"scores":[{"channel":"c0","score":-Infinity}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := []float64{math.NaN(), math.NaN()}
		if decode([]byte(text), questionOf(2).Candidates, got) != "" {
			return
		}
		for i, v := range got {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("candidate %d has %v", i, v)
			}
		}
	})
}
