package control

// Left is a message that could not be settled or cancelled. Scripts rely on the JSON names.
type Left struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Page is the result of changing one page of the messages that a filter finds. C is a position in
// their order.
type Page[C any] struct {
	Done int64 // how many were changed
	Left []Left
	// Last is the position of the last message of the page. More says that others may follow.
	Last C
	More bool
}

// Tried is how many messages of the page were changed or left.
func (p *Page[C]) Tried() int64 { return p.Done + int64(len(p.Left)) }

// EachPage changes messages page by page, so that memory is bounded for any number of them. It
// begins after a position, the zero value for all, and stops when enough returns true. change gets
// the position after which its page begins, and the sum of the pages before. EachPage returns the
// sum of all pages. After an error, the earlier changes stay, and Last is where the failed page
// begins.
func EachPage[C any](
	after C, enough func(sum *Page[C]) bool,
	change func(after C, sum *Page[C]) (Page[C], error),
) (sum Page[C], err error) {
	for sum.Last, sum.More = after, true; err == nil && sum.More && !enough(&sum); {
		var page Page[C]
		page, err = change(sum.Last, &sum)
		sum.Done += page.Done
		sum.Left = append(sum.Left, page.Left...)
		if err == nil {
			sum.Last, sum.More = page.Last, page.More
		}
	}
	return sum, err
}

// Never is for EachPage, to change all pages.
func Never[C any](*Page[C]) bool { return false }
