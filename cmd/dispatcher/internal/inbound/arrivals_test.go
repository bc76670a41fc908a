package inbound

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// arrivedOf makes a store refuse the first messages, and returns the arrival time of each stored
// message, relative to the first attempt.
func arrivedOf(t *testing.T, again provider.Inbound, pause time.Duration) (ages []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away := true
		began := time.Now()
		store := &scriptedStore{answer: func(in []ledger.Inbound) error {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return errLost
			}
			for i := range in {
				ages = append(ages, in[i].At.Sub(began).Round(time.Minute))
			}
			return nil
		}}
		r := newRig(t, store)
		r.run()
		first := text("Start!")
		first.Reference = again.Reference
		for _, in := range []provider.Inbound{first, text("hello")} {
			if r.Take("a", in) {
				t.Error("the message was acknowledged while the database was away")
			}
			time.Sleep(time.Minute)
		}
		mu.Lock()
		away = false
		mu.Unlock()
		time.Sleep(pause)
		for range 2 {
			if !r.Take("a", again) {
				t.Error("the message was not acknowledged")
			}
		}
		r.stop()
	})
	return ages
}

// TestAStartThatComesAgainIsAsOldAsItsFirstArrival: this holds for START only. Once it is stored,
// the next START is a new one.
func TestAStartThatComesAgainIsAsOldAsItsFirstArrival(t *testing.T) {
	t.Parallel()
	with := func(text, reference string) provider.Inbound {
		return provider.Inbound{
			From: "+447700900123", To: "+15550100", Text: text,
			Reference: reference,
		}
	}
	other := with("Start!", "")
	other.From = "+447700900124"
	for name, test := range map[string]struct {
		again provider.Inbound
		pause time.Duration
		want  string
	}{
		"by its reference":    {with("start", "r"), 8 * time.Minute, "[0s 10m0s]"},
		"by its content":      {with("Start!", ""), 8 * time.Minute, "[0s 10m0s]"},
		"another sender":      {other, 8 * time.Minute, "[10m0s 10m0s]"},
		"no START":            {with("hello", ""), 8 * time.Minute, "[10m0s 10m0s]"},
		"days afterwards":     {with("Start!", ""), 71 * time.Hour, "[0s 71h2m0s]"},
		"longer than anybody": {with("Start!", ""), 73 * time.Hour, "[73h2m0s 73h2m0s]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fmt.Sprint(arrivedOf(t, test.again, test.pause)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestArrivalsAreBounded(t *testing.T) {
	t.Parallel()
	var a arrivals
	now := time.Now()
	in := func(i int, at time.Time) *ledger.Inbound {
		return &ledger.Inbound{Channel: "a", Reference: fmt.Sprint(i), At: at}
	}
	for i := range maxArrivals + 5 {
		a.refused(in(i, now))
	}
	if len(a.first) != maxArrivals {
		t.Errorf("%d are remembered", len(a.first))
	}
	a.refused(in(-1, now.Add(keepArrival+time.Hour)))
	if len(a.first) != 1 {
		t.Errorf("got %d remembered when all others are old", len(a.first))
	}
}
