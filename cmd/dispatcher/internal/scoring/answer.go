package scoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// scored is one candidate of an answer. Score is kept as written, because the function number tells
// NaN from invalid values by its text.
type scored struct {
	Channel *string         `json:"channel"`
	Score   json.RawMessage `json:"score"`
}

// decode reads the answer about some candidates: {"scores":[{"channel":"a","score":0.5},...]} with
// each of them once, in any order, and nothing else. It writes their scores into out, which is as
// long as about, or returns the word for the problem.
func decode(raw []byte, about []decide.ScoreCandidate, out []float64) (word string) {
	var answer struct {
		Scores []scored `json:"scores"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil {
		return wordOfSyntax(raw, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || answer.Scores == nil {
		return decide.FunctionInvalid
	}
	return assign(answer.Scores, about, out)
}

// assign puts the scores in the order of their candidates.
func assign(scores []scored, about []decide.ScoreCandidate, out []float64) (word string) {
	places := make(map[string]int, len(about))
	for i := range about {
		places[about[i].Channel] = i
	}
	finite := true
	for _, s := range scores {
		if s.Channel == nil {
			return decide.FunctionInvalid
		}
		place, wanted := places[*s.Channel]
		if !wanted {
			return decide.FunctionInvalid // unknown, or named twice
		}
		delete(places, *s.Channel)
		value, word := number(s.Score)
		if word == decide.FunctionInvalid {
			return word
		}
		finite = finite && word == ""
		out[place] = value
	}
	switch {
	case !finite:
		return decide.FunctionNotFinite
	case len(places) > 0:
		return decide.FunctionTooFew
	}
	return ""
}

// notNumbers are what programs write for a float that is not a number, in lower case and without a
// sign.
var notNumbers = []string{"nan", "inf", "infinity"}

// number reads a score. JavaScript writes NaN as null and leaves out undefined; others write NaN as
// a text. A number may also be too large for a float64.
func number(raw json.RawMessage) (value float64, word string) {
	text := string(raw)
	if text == "" || text == "null" {
		return 0, decide.FunctionNotFinite
	}
	if quoted, err := strconv.Unquote(text); err == nil {
		if slices.Contains(notNumbers, strings.ToLower(strings.TrimLeft(quoted, "+-"))) {
			return 0, decide.FunctionNotFinite
		}
		return 0, decide.FunctionInvalid
	}
	if !strings.ContainsAny(text[:1], "-0123456789") {
		return 0, decide.FunctionInvalid
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, decide.FunctionNotFinite // its syntax is valid, so it is out of range
	}
	return value, ""
}

// wordOfSyntax distinguishes a bare NaN or Infinity, which Python and others write into their JSON,
// from other invalid texts.
func wordOfSyntax(raw []byte, err error) string {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok || syntax.Offset < 1 || syntax.Offset > int64(len(raw)) {
		return decide.FunctionInvalid
	}
	rest := raw[syntax.Offset-1:]
	if bytes.HasPrefix(rest, []byte("NaN")) || bytes.HasPrefix(rest, []byte("Infinity")) {
		return decide.FunctionNotFinite
	}
	return decide.FunctionInvalid
}
