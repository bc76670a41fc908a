package config

import "time"

// NoReceipt says when an accepted message is sent on to the next channel, because no receipt has
// come. The recipient may get it twice then, and both are billed.
type NoReceipt struct {
	After time.Duration // after the provider's answer
}

// minNoReceipt gives receipts time to come: most take a few seconds.
const minNoReceipt = 5 * time.Second

// readNoReceipt reads when messages of a route are sent on without a receipt; nil for never.
func readNoReceipt(f fields, r *Route, known *scope) *NoReceipt {
	v, ok := f.get("no_receipt")
	if !ok {
		return nil
	}
	n := &NoReceipt{}
	keys, ok := v.fields(noReceiptPart)
	if !ok {
		return n
	}
	if len(r.Channels) == 1 {
		v.fail("sends a message on to another channel, but there is only one; add a channel or " +
			"remove no_receipt")
	}
	after, ok := keys.need("after", "after: 10m")
	if !ok {
		return n
	}
	n.After, ok = after.duration(minNoReceipt, day)
	if ok {
		n.check(after, r, known)
	}
	return n
}

// check reports a time that has no effect: no member gives receipts, or receipts are not awaited
// that long.
func (n *NoReceipt) check(after value, r *Route, known *scope) {
	var longest time.Duration
	for _, name := range r.Channels {
		ch := known.channels[name]
		if ch == nil {
			return // reported before
		}
		longest = max(longest, ch.Receipts.Wait())
	}
	switch {
	case len(r.Channels) == 0:
	case longest == 0:
		after.fail("none of the channels gives receipts; remove no_receipt")
	case n.After >= longest:
		after.fail("receipts are awaited for %s at most; choose a shorter time", period(longest))
	}
}
