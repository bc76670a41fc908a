package sandbox

import (
	"context"
	"time"

	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// earlyPatience bounds the wait for the answer to an early receipt: the submit waits for it.
const earlyPatience = 2 * time.Second

// webCarrier is a carrier with an HTTP API.
type webCarrier struct {
	*webtest.Carrier
	profile Profile
	tally   *tally
	rate    rate
	// started is closed once Carrier is set; the first submit may be quicker.
	started chan struct{}
}

func startWeb(c *Carrier, v *vendor, a *account, first uint64, t *tally) (*webCarrier, error) {
	w := &webCarrier{profile: c.Profile, tally: t, rate: rate{max: c.Profile.Rate}, started: make(chan struct{})}
	carrier, err := webtest.Start(webtest.Config{
		Shape: a.shape, Address: c.Address, Log: keptSubmits, OnSubmit: w.early, Reference: func(n uint64) string { return v.reference(first + n) },
		Behaviour: webtest.Behaviour{
			Latency: c.Profile.Latency, Jitter: c.Profile.Jitter, ReceiptDelay: c.Profile.ReceiptDelay,
			Decide: w.decide, ReceiptFor: w.receipts,
		},
	})
	if err != nil {
		return nil, err
	}
	w.Carrier = carrier
	close(w.started)
	return w, nil
}

// keptSubmits bounds the log of a carrier: what lookups can find.
const keptSubmits = 10_000

func (w *webCarrier) decide(_ int, s webtest.Submit) providertest.Answer {
	v := w.profile.verdict(uint64(s.Number)) //nolint:gosec // Counts from 1.
	if w.rate.over(s.At) {
		v = providertest.Throttle
	}
	w.tally.submitted(v)
	answer := providertest.Answer{Verdict: v}
	if v == providertest.Throttle {
		answer.RetryAfter = time.Second
	}
	return answer
}

// early tells what comes before the answer.
func (w *webCarrier) early(s webtest.Submit) {
	if s.Verdict != providertest.Accept {
		return
	}
	n := w.profile.news(uint64(s.Number)) //nolint:gosec // Counts from 1.
	w.tally.told(n)
	if n.none || !n.early {
		return
	}
	<-w.started
	ctx, cancel := context.WithTimeout(context.Background(), earlyPatience)
	defer cancel()
	_, _ = w.Tell(ctx, s, webtest.Receipt{State: n.state}) // a receipt that is refused shows in the dispatcher's metrics
}

// receipts are those that come after the answer.
func (w *webCarrier) receipts(s webtest.Submit) []webtest.Receipt {
	n := w.profile.news(uint64(s.Number)) //nolint:gosec // Counts from 1.
	if n.none || n.early && !n.twice {
		return nil
	}
	list := []webtest.Receipt{{State: n.state}}
	if n.twice && !n.early {
		list = append(list, webtest.Receipt{State: n.state})
	}
	return list
}

func (w *webCarrier) address() string { return w.URL() }

func (w *webCarrier) unread() int { return len(w.Unread()) }

func (w *webCarrier) close() { w.Close() }
