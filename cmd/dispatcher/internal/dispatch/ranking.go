package dispatch

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"dispatcher/selector"
)

// maxRanked is how many candidates a stored ranking holds. One that led to an attempt
// holds more when more were looked at before the one that was taken.
const maxRanked = 32

// byWait stands as Ranking.By where a route held a message for its first choice and
// ranked nobody.
const byWait = "wait"

// Ranking is the compact state that a choice or a wait was decided on, as it is stored.
// Together with the routing version, the envelope and the draw key it tells again
// which channel had to be chosen.
type Ranking struct {
	// Version is the routing version that the candidates come from.
	Version int64 `json:"version"`
	// By is the ranker, or "wait". On a route of mode weighted it ordered all but the first choice,
	// which stands at the front.
	By string `json:"by"`
	// Attempts is how many were made before the choice. On record since attempts are counted here; 0 in
	// older rankings, whatever it was.
	Attempts int `json:"attempts,omitempty"`
	// Cursor is the channel that had the last turn, for round robin; empty before the first.
	Cursor string `json:"cursor,omitempty"`
	// After is the place in configured order behind which round robin went on; -1 is from the start.
	// It is the place of Cursor while that is a member of the route. Nil for other rankers.
	After *int `json:"after,omitempty"`
	// KeyID names the key that drew, for redraw.
	KeyID string `json:"key_id,omitempty"`
	// Scoring is the rule behind the scores of best worker: expression or function; empty for the default.
	Scoring string `json:"scoring,omitempty"`
	// Trouble is why the rule of the route could not score, so that the default did.
	Trouble string `json:"trouble,omitempty"`
	// Candidates stand in the order of consideration. The one that was chosen is the first
	// without a reason; those behind it were not looked at.
	Candidates []Ranked `json:"candidates"`
	// More is how many members of the route follow that are not listed.
	More int `json:"more,omitempty"`
}

// Ranked is one candidate of a Ranking, as it was before the choice took its slot.
type Ranked struct {
	Channel  string `json:"channel"`
	Active   int64  `json:"active"`
	Capacity int64  `json:"capacity"` // 0 for a channel that is no member any more
	// LastAssigned is when it last got an attempt before.
	LastAssigned Micros `json:"last_assigned,omitzero"`
	// Score is set for best worker.
	Score *float64 `json:"score,omitempty"`
	// Reason says why the candidate was passed over.
	Reason string `json:"reason,omitempty"`
}

// Micros is an instant in microseconds since 1970, the resolution of the database's
// clock; 0 is never.
type Micros int64

// microsOf is the inverse of Micros.Time.
func microsOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time is the instant in UTC; the zero time for never.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// UnmarshalJSON reads a number, or a time in RFC 3339, as earlier releases stored it.
func (m *Micros) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return json.Unmarshal(raw, (*int64)(m))
	}
	var t time.Time
	if err := t.UnmarshalJSON(raw); err != nil {
		return err
	}
	*m = microsOf(t)
	return nil
}

// Candidate is what the ranked channel was compared by; index is its place in the route.
func (r *Ranked) Candidate(index int) selector.Candidate {
	c := selector.Candidate{Index: index, Active: r.Active, Capacity: r.Capacity, LastAssigned: r.LastAssigned.Time()}
	if r.Score != nil {
		c.Score = *r.Score
	}
	return c
}

// Chosen is the position of the candidate that was chosen; -1 when none was.
func (r *Ranking) Chosen() int {
	for i := range r.Candidates {
		if r.Candidates[i].Reason == "" {
			return i
		}
	}
	return -1
}

// AppendRanking writes the JSON that json.Unmarshal reads back. Rankings are written
// for every fallback, inside the claim, where reflection would cost more than the choice.
func AppendRanking(dst []byte, r *Ranking) []byte {
	dst = r.appendHead(dst)
	var scores scoreTexts
	for i := range r.Candidates {
		dst = r.Candidates[i].append(dst, &scores)
	}
	return r.appendTail(dst)
}

// appendHead writes everything before the candidates.
func (r *Ranking) appendHead(dst []byte) []byte {
	dst = append(dst, `{"version":`...)
	dst = strconv.AppendInt(dst, r.Version, 10)
	dst = appendMember(dst, `,"by":`, r.By)
	if r.Attempts > 0 {
		dst = strconv.AppendInt(append(dst, `,"attempts":`...), int64(r.Attempts), 10)
	}
	dst = appendOptional(dst, `,"cursor":`, r.Cursor)
	if r.After != nil {
		dst = strconv.AppendInt(append(dst, `,"after":`...), int64(*r.After), 10)
	}
	dst = appendOptional(dst, `,"key_id":`, r.KeyID)
	dst = appendOptional(dst, `,"scoring":`, r.Scoring)
	dst = appendOptional(dst, `,"trouble":`, r.Trouble)
	return append(dst, `,"candidates":[`...)
}

// appendTail writes everything behind the candidates.
func (r *Ranking) appendTail(dst []byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1] // behind the last candidate
	}
	dst = append(dst, ']')
	if r.More > 0 {
		dst = strconv.AppendInt(append(dst, `,"more":`...), int64(r.More), 10)
	}
	return append(dst, '}')
}

// scoreTexts remembers how scores are written. Messages with the same labels and selectors give
// channels the same scores, and to copy digits is quicker than to work them out.
type scoreTexts [64]struct {
	score float64
	text  string // empty until the place is used
}

func (s *scoreTexts) append(dst []byte, score float64) []byte {
	bits := math.Float64bits(score)
	known := &s[(bits^bits>>26^bits>>46)%uint64(len(s))]
	if known.text == "" || known.score != score {
		known.score, known.text = score, strconv.FormatFloat(score, 'g', -1, 64)
	}
	return append(dst, known.text...)
}

// append writes the candidate and a comma.
func (r *Ranked) append(dst []byte, scores *scoreTexts) []byte {
	dst = appendMember(dst, `{"channel":`, r.Channel)
	dst = strconv.AppendInt(append(dst, `,"active":`...), r.Active, 10)
	dst = strconv.AppendInt(append(dst, `,"capacity":`...), r.Capacity, 10)
	if r.LastAssigned != 0 {
		dst = strconv.AppendInt(append(dst, `,"last_assigned":`...), int64(r.LastAssigned), 10)
	}
	if r.Score != nil {
		dst = scores.append(append(dst, `,"score":`...), *r.Score)
	}
	return append(appendOptional(dst, `,"reason":`, r.Reason), '}', ',')
}

// appendOptional leaves an empty text out.
func appendOptional(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return appendMember(dst, key, s)
}

func appendMember(dst []byte, key, s string) []byte {
	dst = append(dst, key...)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
