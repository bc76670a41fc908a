package report

import (
	"slices"

	"dispatcher/selector"
)

// Redraw is one of the draws without replacement by which a redraw orders candidates. It is
// made over the weights that are left: Size is their sum, and Low to High, inclusive, is the
// interval of the candidate that it picked.
type Redraw struct {
	// Number is 2 for the first redraw of a message, 3 for the next and so on; draw 1 is that of its first
	// choice.
	Number int `json:"number"`
	// Draw is nil when the key that drew is not at hand, or the candidate was the only one left.
	Draw *uint64 `json:"draw"`
	Size uint64  `json:"size"`
	Low  uint64  `json:"low"`
	High uint64  `json:"high"`
}

// weightLeft is a channel that has not been drawn yet, with its weight as a whole number.
type weightLeft struct {
	channel string
	weight  uint64
}

// redraw tells by which draw each candidate of a redraw came to its place. The candidates stand in drawn
// order, behind the first choice on a route that draws.
func (l *lookback) redraw(candidates []Candidate, b *Basis) {
	if b.RankedBy != "redraw" || l.route == nil {
		return
	}
	if b.RedrawKeyID == "" {
		b.RedrawKeyID = l.message.Plan.KeyID // of a forecast
	}
	left, size := l.weights()
	if l.route.Mode == modeWeighted {
		left, size = without(left, size, l.message.Plan.FirstChoice)
	}
	drawer := l.drawer(b.RedrawKeyID)
	number := 2
	for i := range candidates {
		c := &candidates[i]
		r := picked(left, c.Channel)
		if r == nil {
			continue // the first choice, weight 0, or no member any more
		}
		r.Number, r.Size = number, size
		if drawer != nil && len(left) > 1 {
			r.Draw = new(drawer.Draw(l.message.ID, number, size))
		}
		c.Redraw = r
		left, size = without(left, size, c.Channel)
		number++
	}
}

// weights are the channels that have an interval, in configured order, and their sum.
func (l *lookback) weights() (left []weightLeft, size uint64) {
	table, err := selector.NewTable(l.route.Entries())
	if err != nil {
		return nil, 0 // a document with such weights was never applied
	}
	for _, iv := range table.Intervals() {
		if !iv.Empty {
			left = append(left, weightLeft{iv.Name, iv.High - iv.Low + 1})
		}
	}
	return left, table.Size()
}

// drawer is that of a key; nil when it is not at hand.
func (l *lookback) drawer(id string) *selector.Drawer {
	for _, key := range l.keys {
		if key.ID() == id {
			return selector.NewDrawer(key)
		}
	}
	return nil
}

// picked is the interval of a channel among those left; nil when it is none of them.
func picked(left []weightLeft, channel string) *Redraw {
	low := uint64(0)
	for _, one := range left {
		if one.channel == channel {
			return &Redraw{Low: low, High: low + one.weight - 1}
		}
		low += one.weight
	}
	return nil
}

// without takes a channel out, if it is there.
func without(left []weightLeft, size uint64, channel string) ([]weightLeft, uint64) {
	at := slices.IndexFunc(left, func(one weightLeft) bool { return one.channel == channel })
	if at < 0 {
		return left, size
	}
	size -= left[at].weight
	return slices.Delete(left, at, at+1), size
}
