package config

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// Receipts says whether receipts of a channel are expected. The zero value is what the document says that does not
// mention them: they are where the channel gets any.
type Receipts struct {
	// None expects none, so that what the provider took stays accepted.
	None bool
	// Within is how long after the provider took a message its receipt is waited for; after that nobody knows what
	// became of it. 0 leaves it to DefaultReceiptsWithin.
	Within time.Duration
}

// DefaultReceiptsWithin is as long as most providers try to deliver.
const DefaultReceiptsWithin = 72 * time.Hour

// longestWithin is longer than any provider tries.
const longestWithin = 30 * day

// Wait is how long receipts are waited for when they come; 0 when none are expected.
func (r Receipts) Wait() time.Duration {
	switch {
	case r.None:
		return 0
	case r.Within == 0:
		return DefaultReceiptsWithin
	}
	return r.Within
}

// noReceipts is the word of the document for channels without.
const noReceipts = "none"

// readReceipts reads none, or a mapping with within.
func readReceipts(v value, active ActiveLimit) (r Receipts) {
	if v.node.Kind == yaml.ScalarNode {
		_, r.None = v.word("receipts", []string{noReceipts})
		if r.None && active.Until == untilReceipt {
			v.fail("the slots of this channel are held until the receipt; leave this out, or write active.until: submit")
		}
		return r
	}
	f, ok := v.fields("within")
	if !ok {
		return r
	}
	if within, ok := f.need("within", "within: 72h"); ok {
		r.Within, _ = within.duration(time.Second, longestWithin)
	}
	return r
}

// leavesOfReceipts has nothing for a document that does not mention them.
func leavesOfReceipts(l leaves, r Receipts) {
	switch {
	case r.None:
		l.set(noReceipts)
	case r.Within > 0:
		l.below("within").set(period(r.Within))
	}
}
