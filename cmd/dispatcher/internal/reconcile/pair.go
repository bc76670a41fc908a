package reconcile

import (
	"cmp"
	"slices"
	"time"
)

// Candidate is a line without an id of ours, or an attempt whose id is on no line.
type Candidate struct {
	Line     bool // else an attempt
	ID       int64
	Number   int64 // keyed hash of the number
	At       time.Time
	Segments int // 0 for a line that does not say
}

// Pair is a line and an attempt that belong together.
type Pair struct {
	Attempt, Line int64
	// Sure is whether every attempt to the number near that time has a line. If not, the line may
	// belong to another of them.
	Sure bool
}

// Pairer pairs candidates that come ordered by number and time.
type Pairer struct {
	// Within is how far the times of a line and its attempt may differ, because of clocks and network
	// delay.
	Within time.Duration
	group  []Candidate // of one number
	used   map[int64]bool
	pairs  []Pair
}

// Add adds the next candidate. If it is of another number, Add returns the pairs of the number
// before. They are valid until the next call.
func (p *Pairer) Add(c Candidate) []Pair {
	var pairs []Pair
	if len(p.group) > 0 && p.group[0].Number != c.Number {
		pairs = p.End()
	}
	p.group = append(p.group, c)
	return pairs
}

// End returns the pairs of the last number.
func (p *Pairer) End() []Pair {
	p.pairs = p.pairs[:0]
	// Split where a gap is longer than Within: no pair can span it.
	from := 0
	for i := range p.group {
		if last := i+1 == len(p.group); last || p.group[i+1].At.Sub(p.group[i].At) > p.Within {
			p.cluster(p.group[from : i+1])
			from = i + 1
		}
	}
	p.group = p.group[:0]
	return p.pairs
}

// cluster pairs candidates of one number without a long gap between them. Lines and attempts of
// equal segments are paired in the order of their times, which gives the most pairs. The number of
// a line has a hash under each key, so the line is a candidate once for each; it is paired once.
func (p *Pairer) cluster(all []Candidate) {
	var lines, attempts []Candidate
	for _, c := range all {
		switch {
		case !c.Line:
			attempts = append(attempts, c)
		case !p.used[c.ID]:
			lines = append(lines, c)
		}
	}
	if len(lines) == 0 || len(attempts) == 0 {
		return
	}
	slices.SortStableFunc(lines, func(a, b Candidate) int { // those without segments come last
		return cmp.Compare(b.Segments, a.Segments)
	})
	begin := len(p.pairs)
	for len(lines) > 0 {
		same := slices.IndexFunc(lines, func(c Candidate) bool {
			return c.Segments != lines[0].Segments
		})
		if same < 0 {
			same = len(lines)
		}
		p.equal(lines[:same], attempts)
		lines = lines[same:]
	}
	sure := len(p.pairs)-begin == len(attempts)
	for i := begin; i < len(p.pairs); i++ {
		p.pairs[i].Sure = sure
	}
}

// equal pairs lines that all have the same segments with attempts that have no line yet. Lines with
// 0 segments match any attempt.
func (p *Pairer) equal(lines, attempts []Candidate) {
	for i := range attempts {
		a := &attempts[i]
		if a.ID == 0 || lines[0].Segments != 0 && a.Segments != lines[0].Segments {
			continue
		}
		for len(lines) > 0 && a.At.Sub(lines[0].At) > p.Within {
			lines = lines[1:]
		}
		switch {
		case len(lines) == 0:
			return
		case lines[0].At.Sub(a.At) > p.Within:
			continue
		}
		p.pairs = append(p.pairs, Pair{Attempt: a.ID, Line: lines[0].ID})
		if p.used == nil {
			p.used = map[int64]bool{}
		}
		p.used[lines[0].ID] = true
		a.ID = 0
		if lines = lines[1:]; len(lines) == 0 {
			return
		}
	}
}
