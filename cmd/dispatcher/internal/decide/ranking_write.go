package decide

import (
	"encoding/json"
	"math"
	"strconv"
)

// AppendRanking writes the stored form of a ranking: a JSON object whose text "line" lists the
// candidates, separated by commas:
//
//	{"version":7,"by":"load_ratio","latest":1795262400000000,
//	 "line":"a 3/100 0 no_slot:1d:messages,b 4 250,c 5/50 -","more":12}
//
// The fields of a candidate are separated by spaces: its channel, what the order depends on, and
// why it was passed over, with the name of the limit if one had no room. The chosen candidate and
// those after it have no such reason. What the order depends on is
//
//	load_ratio, wait          load idle
//	best_worker               score idle
//	the same by expression    score load idle
//	round_robin, redraw, order  nothing: they do not depend on the channels' state
//
// load is active/capacity; the capacity is left out when it equals that of the candidate before.
// idle is how many microseconds before "latest" the channel got its last attempt, or - for never.
// score is a number, = for the same as the candidate before, or - for none. Rankings by
// round_robin, redraw and order end with the chosen candidate.
//
// Every fallback stores a ranking, and so does every message on a route that does not draw.
// PostgreSQL parses each value of a JSON document, so one text for all candidates costs half as
// much as a list, and a quarter of a list of objects; BenchmarkStoredRankings measures it.
func AppendRanking(dst []byte, r *Ranking) []byte {
	w := newCandidateWriter(r)
	for i := range r.Candidates {
		w.latest = max(w.latest, r.Candidates[i].LastAssigned)
	}
	var scores scoreTexts
	w.scores = &scores
	dst = w.appendHead(dst, r)
	n := len(r.Candidates)
	if chosen := r.Chosen(); w.stateless() && chosen >= 0 {
		n = chosen + 1
	}
	for i := range r.Candidates[:n] {
		dst = w.append(dst, &r.Candidates[i])
	}
	return appendTail(dst, r.More+len(r.Candidates)-n)
}

// MarshalJSON writes the form of AppendRanking.
func (r Ranking) MarshalJSON() ([]byte, error) { return AppendRanking(nil, &r), nil }

// fields are those that candidates have between the channel and the reason.
type fields struct{ score, load, idle bool }

func fieldsOf(r *Ranking) fields {
	switch Ranker(r.By) {
	case RoundRobin, Redraw, InOrder:
		return fields{}
	case BestWorker: // an expression may depend on the load
		return fields{
			score: true, load: r.Scoring == ByExpression || r.Trouble == ExpressionFailed,
			idle: true,
		}
	case LoadRatio:
	}
	return fields{load: true, idle: true}
}

// HoldsLoad reports whether candidates are stored with their load.
func (r *Ranking) HoldsLoad() bool { return fieldsOf(r).load }

// Stateless reports whether the order depends only on a turn, on draws or on the document, and not
// on the channels' state.
func (r *Ranking) Stateless() bool { return fieldsOf(r).stateless() }

// stateless reports whether candidates have no field of a channel's state.
func (f fields) stateless() bool { return f == fields{} }

// candidateWriter writes the candidates of one ranking.
type candidateWriter struct {
	fields
	latest Micros
	scores *scoreTexts

	written  bool    // whether a candidate has been written
	capacity int64   // of the one before
	score    float64 // of the one before that has one
	scored   bool    // whether one before has
}

func newCandidateWriter(r *Ranking) candidateWriter { return candidateWriter{fields: fieldsOf(r)} }

// appendHead writes everything before the candidates.
func (w *candidateWriter) appendHead(dst []byte, r *Ranking) []byte {
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
	if w.idle && w.latest != 0 {
		dst = strconv.AppendInt(append(dst, `,"latest":`...), int64(w.latest), 10)
	}
	return append(dst, `,"line":"`...)
}

// append writes one candidate.
func (w *candidateWriter) append(dst []byte, r *Ranked) []byte {
	if w.written {
		dst = append(dst, ',')
	}
	dst = appendWord(dst, r.Channel)
	if w.fields.score {
		dst = w.appendScore(append(dst, ' '), r.Score)
	}
	if w.load {
		dst = strconv.AppendInt(append(dst, ' '), r.Active, 10)
		if !w.written || r.Capacity != w.capacity {
			dst = strconv.AppendInt(append(dst, '/'), r.Capacity, 10)
			w.capacity = r.Capacity
		}
	}
	if w.idle {
		dst = append(dst, ' ')
		if r.LastAssigned == 0 {
			dst = append(dst, '-')
		} else {
			dst = strconv.AppendInt(dst, int64(w.latest-r.LastAssigned), 10)
		}
	}
	if r.Reason != "" {
		dst = r.Limit.append(appendWord(append(dst, ' '), r.Reason))
	}
	w.written = true
	return dst
}

func (w *candidateWriter) appendScore(dst []byte, score *float64) []byte {
	switch {
	case score == nil:
		return append(dst, '-')
	case w.scored && *score == w.score:
		return append(dst, '=')
	}
	w.score, w.scored = *score, true
	return w.scores.append(dst, *score)
}

// appendTail writes everything after the candidates.
func appendTail(dst []byte, more int) []byte {
	dst = append(dst, '"')
	if more > 0 {
		dst = strconv.AppendInt(append(dst, `,"more":`...), int64(more), 10)
	}
	return append(dst, '}')
}

// scoreTexts caches how scores are written. Messages with the same labels and selectors give
// channels the same scores, and copying digits is faster than formatting them.
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

// plain reports whether a byte is written as it is. All others are written as % and two hexadecimal
// digits: separators, also those of CSV cells, bytes that JSON would escape, and everything outside
// ASCII.
func plain(c byte) bool {
	return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != ',' && c != ';' && c != '%'
}

// appendWord writes a channel or a reason.
func appendWord(dst []byte, word string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(word) {
		if c := word[i]; !plain(c) {
			dst = append(dst, word[:i]...)
			for ; i < len(word); i++ {
				if c = word[i]; plain(c) {
					dst = append(dst, c)
				} else {
					dst = append(dst, '%', digits[c>>4], digits[c&15])
				}
			}
			return dst
		}
	}
	return append(dst, word...)
}

// appendOptional leaves out an empty text.
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
			quoted, _ := json.Marshal(s) // marshalling a string cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
