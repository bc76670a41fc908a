// Package selector chooses channels: the interval table that turns a draw into a first choice in
// exact proportion to configured weights, the keyed draw itself, and the rankings that order the
// fallbacks.
//
// It knows neither messages nor providers nor limits, and does no I/O. Every function gives the
// same answer for the same arguments, so an auditor can repeat each choice.
//
// The interval table follows the random-proportion selection published by Li, Wang and Xu for SMS
// gateways with several carriers. Instead of an array with one slot per unit of weight it keeps one
// closed interval per channel.
package selector

import (
	"errors"
	"fmt"
)

// Entry is one weighted channel of a route.
type Entry struct {
	Name   string
	Weight Weight
}

// Interval is the closed range [Low, High] of draws that pick one entry. An entry of weight 0 has
// Empty set and no range.
type Interval struct {
	Name   string
	Weight Weight
	Low    uint64
	High   uint64
	Empty  bool
}

// Table maps a draw in [0, Size) to an entry. It is immutable and safe for concurrent use; a change
// of weights makes a new Table.
//
// Pick takes constant time. A guide index cuts [0, Size) into equal cells and stores for each cell
// the entry of its first draw (Chen and Asau, 1974), so the search starts at most a few entries
// before the answer.
type Table struct {
	entries []Entry
	bounds  []bound
	guide   []int32
	shift   uint // a draw's cell is draw >> shift
	size    uint64
}

// bound is the first draw after an entry's interval. Entries without an interval have none.
type bound struct {
	end   uint64
	entry int32
}

// NewTable scales the weights to whole numbers by the smallest power of ten and lays their
// intervals end to end in the given order. The weights may have any sum.
//
// It refuses an empty list, a list of zeros, a repeated or empty name, and weights whose scaled sum
// exceeds 2^40.
func NewTable(entries []Entry) (*Table, error) {
	if len(entries) == 0 {
		return nil, errors.New("no channel has a weight: name at least one")
	}
	decimals, names := 0, make(map[string]bool, len(entries))
	for _, e := range entries {
		if e.Name == "" || names[e.Name] {
			return nil, fmt.Errorf("channel %q is named twice or has no name", e.Name)
		}
		names[e.Name] = true
		decimals = max(decimals, e.Weight.decimals)
	}
	t := &Table{entries: append([]Entry(nil), entries...)}
	for i, e := range entries {
		n, ok := e.Weight.scaled(decimals)
		if !ok || t.size+n > MaxSize {
			return nil,
				fmt.Errorf("weight %s of channel %s: scaled to whole numbers the weights sum to more than "+
					"2^40; use fewer decimals", e.Weight, e.Name)
		}
		if n == 0 {
			continue
		}
		t.size += n
		t.bounds = append(t.bounds, bound{end: t.size, entry: int32(i)})
	}
	if t.size == 0 {
		return nil, errors.New("all weights are 0: give at least one channel a weight above 0")
	}
	t.buildGuide()
	return t, nil
}

// buildGuide sizes the cells so that there are between two and four for each interval.
func (t *Table) buildGuide() {
	for t.size>>t.shift > uint64(4*len(t.bounds)) {
		t.shift++
	}
	t.guide = make([]int32, (t.size-1)>>t.shift+1)
	at := 0
	for cell := range t.guide {
		first := uint64(cell) << t.shift
		for t.bounds[at].end <= first {
			at++
		}
		t.guide[cell] = int32(at)
	}
}

// Size is N, the number of possible draws.
func (t *Table) Size() uint64 { return t.size }

// Len is the number of entries, those of weight 0 included.
func (t *Table) Len() int { return len(t.entries) }

// Entry returns entry i in the order given to NewTable.
func (t *Table) Entry(i int) Entry { return t.entries[i] }

// Pick returns the index of the entry whose interval contains the draw. It panics when the draw is
// not below Size: otherwise a wrong channel would be chosen without notice.
func (t *Table) Pick(draw uint64) int {
	at := t.guide[draw>>t.shift]
	for t.bounds[at].end <= draw {
		at++
	}
	return int(t.bounds[at].entry)
}

// Intervals lists every entry with its interval, in order.
func (t *Table) Intervals() []Interval {
	out := make([]Interval, len(t.entries))
	for i, e := range t.entries {
		out[i] = Interval{Name: e.Name, Weight: e.Weight, Empty: true}
	}
	low := uint64(0)
	for _, b := range t.bounds {
		out[b.entry].Low, out[b.entry].High, out[b.entry].Empty = low, b.end-1, false
		low = b.end
	}
	return out
}

// Share is the configured proportion of entry i, between 0 and 1.
func (t *Table) Share(i int) float64 {
	low := uint64(0)
	for _, b := range t.bounds {
		if int(b.entry) == i {
			return float64(b.end-low) / float64(t.size)
		}
		low = b.end
	}
	return 0
}
