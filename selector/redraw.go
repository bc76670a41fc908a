package selector

import "slices"

// firstRedraw is the number of the draw that picks the second candidate; draw 1 is the
// first choice's.
const firstRedraw = 2

// Redraw orders the entries of the table for the fallback ranking redraw: by successive draws
// without replacement. The entry first, which draw 1 picked, is left out; -1 leaves out none. The
// draws 2, 3, ... of the message id each pick and remove one of the entries left, with the sum of
// their weights as size. An entry of weight 0 is never drawn and not listed.
//
// The order depends only on the drawer's key, the id and the weights. Whichever entries cannot take
// the message, each of the others comes first among those that can, in exact proportion to its
// weight.
func (t *Table) Redraw(d *Drawer, id string, first int) []int {
	left, size := t.without(first)
	order := make([]int, 0, len(left))
	for number := firstRedraw; len(left) > 1; number++ {
		at := pickLeft(left, d.Draw(id, number, size))
		order = append(order, left[at].entry)
		size -= left[at].weight
		left = slices.Delete(left, at, at+1)
	}
	if len(left) == 1 { // the only one left wins every draw
		order = append(order, left[0].entry)
	}
	return order
}

// share is an entry that has not been drawn yet and its weight as a whole number.
type share struct {
	entry  int
	weight uint64
}

// without lists the entries that have an interval, except one, and the sum of their weights.
func (t *Table) without(except int) (left []share, size uint64) {
	left, low := make([]share, 0, len(t.bounds)), uint64(0)
	for _, b := range t.bounds {
		weight := b.end - low
		low = b.end
		if int(b.entry) != except {
			left = append(left, share{entry: int(b.entry), weight: weight})
			size += weight
		}
	}
	return left, size
}

// pickLeft finds the entry whose interval contains the draw when the intervals of the entries left
// are laid end to end in configured order.
func pickLeft(left []share, draw uint64) int {
	at := 0
	for draw >= left[at].weight {
		draw -= left[at].weight
		at++
	}
	return at
}
