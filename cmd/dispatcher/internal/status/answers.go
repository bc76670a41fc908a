package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/provider/breaker"
)

// mostCodes bounds the codes that are shown for a channel.
const mostCodes = 10

func (c *Channel) takeOutcomes(all []ledger.RecentOutcome, within time.Duration) {
	var attempts int64
	for _, o := range all {
		if o.Channel != c.Name {
			continue
		}
		attempts += o.Attempts
		c.awaited, c.receipted = c.awaited+o.Awaited, c.receipted+o.Receipts
		if o.Outcome == "" {
			continue
		}
		if unsent(&o) {
			c.Unsent = append(c.Unsent, CodeCount{o.Code, o.Outcome, o.Attempts})
			continue
		}
		c.answered[o.Outcome] += o.Attempts
		switch {
		case o.Outcome == "accepted":
			c.Accepted += o.Attempts
		case len(c.Codes) < mostCodes:
			c.Codes = append(c.Codes, CodeCount{cmp.Or(o.Code, o.Outcome), o.Outcome, o.Attempts})
		}
	}
	c.Rate = float64(attempts) / within.Seconds()
}

// unsent reports whether the attempts did not leave. Their code is then one of the dispatcher's.
func unsent(o *ledger.RecentOutcome) bool {
	return o.Outcome == provider.Refused.String() &&
		(decide.UnsentCode(o.Code) || o.Code == breaker.CodeEnded || provider.Unready(o.Code))
}

// A finding needs at least someAnswers answers; badAnswers is the part of them that must be bad.
const (
	badAnswers  = 0.2
	someAnswers = 20
)

// often reports whether an outcome is that of many answers: n of all.
func (c *Channel) often(outcome string) (n, all int64, often bool) {
	for _, one := range c.answered {
		all += one
	}
	n = c.answered[outcome]
	return n, all, all >= someAnswers && float64(n) >= badAnswers*float64(all)
}

// findAnswers reports that many answers of the provider are bad, and names the most frequent code.
func (c *Channel) findAnswers(check string) (out []Finding) {
	for _, bad := range []struct{ outcome, words, fix string }{
		{
			"refused", "the provider refuses %d of %d submits",
			"look its code up at the provider; credit, account or sender may be at fault",
		},
		{
			"rejected", "the provider rejects %d of %d messages for good",
			"look its code up at the provider; did a producer, a sender or a country change?",
		},
		{
			"throttled", "the provider asks to slow down in %d of %d answers",
			"lower the channel's limit to what the provider allows",
		},
		{
			"unknown", "%d of %d submits have no answer",
			`ask the provider; see "dispatcher ambiguous list", and send none of them again by hand`,
		},
	} {
		n, all, often := c.often(bad.outcome)
		if !often {
			continue
		}
		detail := fmt.Sprintf(bad.words, n, all)
		of := func(code CodeCount) bool { return code.Outcome == bad.outcome }
		if i := slices.IndexFunc(c.Codes, of); i >= 0 {
			detail += fmt.Sprintf(", %d times with code %s", c.Codes[i].Count, c.Codes[i].Code)
		}
		out = append(out, Warned(check, detail, bad.fix))
	}
	if c.receipts && c.awaited >= someAnswers && c.receipted == 0 {
		out = append(out, Warned(check, fmt.Sprintf("none of %d messages that it accepted more than a "+
			"minute ago has a receipt", c.awaited), "is its webhook reachable from outside, or a bind up "+
			"that receives? See callbacks in the metrics; ask the provider"))
	}
	return out
}
