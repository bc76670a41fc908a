package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ReadRanking reads the ranking that is stored with an attempt or a wait; nil without one.
func ReadRanking(raw []byte) (*Ranking, error) {
	if raw == nil {
		return nil, nil
	}
	r := &Ranking{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("read the stored ranking: %w", err)
	}
	return r, nil
}

// storedRanking has the keys of a stored ranking.
type storedRanking struct {
	Version  int64   `json:"version"`
	By       string  `json:"by"`
	Attempts int     `json:"attempts"`
	Cursor   string  `json:"cursor"`
	After    *int    `json:"after"`
	KeyID    string  `json:"key_id"`
	Scoring  string  `json:"scoring"`
	Trouble  string  `json:"trouble"`
	Latest   Micros  `json:"latest"`
	Line     *string `json:"line"`
	More     int     `json:"more"`
}

// UnmarshalJSON reads what AppendRanking wrote.
func (r *Ranking) UnmarshalJSON(raw []byte) error {
	var s storedRanking
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*r = Ranking{
		Version: s.Version, By: s.By, Attempts: s.Attempts, Cursor: s.Cursor, After: s.After,
		KeyID:   s.KeyID,
		Scoring: s.Scoring, Trouble: s.Trouble, More: s.More,
	}
	if s.Line == nil || *s.Line == "" {
		return nil
	}
	reader := newCandidateReader(r, s.Latest)
	for text := range strings.SplitSeq(*s.Line, ",") {
		one, err := reader.read(text)
		if err != nil {
			return fmt.Errorf("candidate %d: %w", len(r.Candidates)+1, err)
		}
		r.Candidates = append(r.Candidates, one)
	}
	return nil
}

// errFields says that a candidate has too many or too few fields.
var errFields = errors.New("it has another number of fields than its ranker stores")

// candidateReader reads what candidateWriter wrote.
type candidateReader struct {
	// each reads one field into a candidate; the reason comes after the last of them.
	each   []func(one *Ranked, word string) error
	latest Micros

	capacity int64    // of the one before
	score    *float64 // of the one before that has one
}

func newCandidateReader(ranking *Ranking, latest Micros) *candidateReader {
	r := &candidateReader{latest: latest}
	f := fieldsOf(ranking)
	r.each = append(r.each, readChannel)
	if f.score {
		r.each = append(r.each, r.readScore)
	}
	if f.load {
		r.each = append(r.each, r.readLoad)
	}
	if f.idle {
		r.each = append(r.each, r.readIdle)
	}
	return r
}

func (r *candidateReader) read(text string) (one Ranked, err error) {
	words := strings.Split(text, " ")
	reason := len(words) - len(r.each) // 1 when there is one
	if reason < 0 || reason > 1 {
		return one, errFields
	}
	for i, read := range r.each {
		if err := read(&one, words[i]); err != nil {
			return one, err
		}
	}
	if reason == 1 {
		one.Reason, one.Limit, err = ReadReason(words[len(r.each)])
	}
	return one, err
}

func readChannel(one *Ranked, word string) (err error) {
	one.Channel, err = url.PathUnescape(word)
	return err
}

func (r *candidateReader) readScore(one *Ranked, word string) error {
	switch word {
	case "-":
		return nil
	case "=":
		one.Score = r.score
		return nil
	}
	score, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return err
	}
	r.score = &score
	one.Score = r.score
	return nil
}

func (r *candidateReader) readLoad(one *Ranked, word string) (err error) {
	active, capacity, changed := strings.Cut(word, "/")
	if changed {
		if r.capacity, err = strconv.ParseInt(capacity, 10, 64); err != nil {
			return err
		}
	}
	one.Capacity = r.capacity
	one.Active, err = strconv.ParseInt(active, 10, 64)
	return err
}

func (r *candidateReader) readIdle(one *Ranked, word string) error {
	if word == "-" {
		return nil
	}
	before, err := strconv.ParseInt(word, 10, 64)
	one.LastAssigned = r.latest - Micros(before)
	return err
}
