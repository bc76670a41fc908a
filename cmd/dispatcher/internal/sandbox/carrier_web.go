package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// earlyTimeout bounds the wait for the answer to an early receipt, because the submit waits for it.
const earlyTimeout = 2 * time.Second

// webCarrier is a carrier with an HTTP API.
type webCarrier struct {
	*webtest.Carrier
	profile Profile
	counter *counter
	rate    rate
	// callback is the address for inbound messages.
	callback string
	refused  atomic.Int64 // calls with receipts
	// missed are the numbers of the submits whose early receipt was not taken, so that it is sent
	// again.
	missed sync.Map
	// started is closed once Carrier is set; the first submit may come earlier.
	started chan struct{}
}

// setting is what a carrier gets from the sandbox.
type setting struct {
	first    uint64 // before the first id of a message
	callback string
	counter  *counter
}

func startWeb(c *Carrier, v *vendor, a *account, in *setting) (*webCarrier, error) {
	w := &webCarrier{
		profile: c.Profile, counter: in.counter, rate: rate{max: c.Profile.Rate},
		callback: in.callback,
		started:  make(chan struct{}),
	}
	carrier, err := webtest.Start(webtest.Config{
		Protocol: forgetful(a.shape), Address: c.Address, Log: keptSubmits, OnSubmit: w.early,
		OnRefused: func(webtest.Submit) { w.refused.Add(1) },
		Reference: func(n uint64) string { return v.reference(in.first + n) },
		Behaviour: webtest.Behaviour{
			Latency: c.Profile.Latency, Jitter: c.Profile.Jitter,
			ReceiptDelay: c.Profile.ReceiptDelay,
			Decide:       w.decide, ReceiptFor: w.receipts,
		},
	})
	if err != nil {
		return nil, err
	}
	w.Carrier = carrier
	close(w.started)
	return w, nil
}

// keptSubmits bounds the log of a carrier, which lookups search.
const keptSubmits = 10_000

func (w *webCarrier) decide(_ int, s webtest.Submit) providertest.Answer {
	v := w.profile.verdict(uint64(s.Number)) //nolint:gosec // Counts from 1.
	if w.rate.over(s.At) {
		v = providertest.Throttle
	}
	w.counter.submitted(v)
	answer := providertest.Answer{Reply: v}
	if v == providertest.Throttle {
		answer.RetryAfter = time.Second
	}
	return answer
}

// early sends the receipts that precede the answer.
func (w *webCarrier) early(s webtest.Submit) {
	if s.Reply != providertest.Accept {
		return
	}
	n := w.profile.receiptPlan(uint64(s.Number)) //nolint:gosec // Counts from 1.
	w.counter.planned(n)
	if n.none || !n.early {
		return
	}
	<-w.started
	ctx, cancel := context.WithTimeout(context.Background(), earlyTimeout)
	defer cancel()
	if status, err := w.SendReceipt(ctx, s, webtest.Receipt{State: n.state}); err != nil ||
		status != 0 && status/100 != 2 {
		w.refused.Add(1)
		w.missed.Store(s.Number, true)
	}
}

// receipts are those that follow the answer, including an early one that was not taken.
func (w *webCarrier) receipts(s webtest.Submit) []webtest.Receipt {
	n := w.profile.receiptPlan(uint64(s.Number)) //nolint:gosec // Counts from 1.
	_, missed := w.missed.LoadAndDelete(s.Number)
	if n.none || n.early && !n.twice && !missed {
		return nil
	}
	list := []webtest.Receipt{{State: n.state}}
	if n.twice && !n.early {
		list = append(list, webtest.Receipt{State: n.state})
	}
	return list
}

// inbound calls the dispatcher and waits for its answer.
func (w *webCarrier) inbound(ctx context.Context, in provider.Inbound) error {
	switch status, err := w.SendInbound(ctx, w.callback, in); {
	case err != nil:
		return fmt.Errorf(
			"the dispatcher was not reached at %s: is it running, and is that "+
				"DISPATCHER_RECEIPTS_LISTEN?",
			w.callback,
		)
	case status == 0:
		return errNoInbound
	case status/100 != 2:
		return fmt.Errorf("the dispatcher answered %d at %s", status, w.callback)
	}
	return nil
}

func (w *webCarrier) address() string { return w.URL() }

func (w *webCarrier) unread() int { return len(w.Unread()) }

func (w *webCarrier) callsRefused() int { return int(w.refused.Load()) }

func (w *webCarrier) close() { w.Close() }

// forgetful is the API of a vendor that did not take the submits that it did not answer: a lookup
// does not find them.
func forgetful(shape webtest.Protocol) webtest.Protocol {
	if other, ok := shape.(webtest.ExtraRequests); ok {
		return &forgetting{shape, other}
	}
	return shape
}

// forgetting is an API whose lookups do not find lost submits.
type forgetting struct {
	webtest.Protocol
	other webtest.ExtraRequests
}

var _ webtest.ExtraRequests = (*forgetting)(nil)

// ServeExtra answers as if only the answered submits had come.
func (f *forgetting) ServeExtra(
	w http.ResponseWriter, r *http.Request, body []byte, known []webtest.Submit,
) bool {
	return f.other.ServeExtra(w, r, body, slices.DeleteFunc(known, func(s webtest.Submit) bool {
		return s.Reply == providertest.Lose || s.Reply == providertest.Cut
	}))
}
