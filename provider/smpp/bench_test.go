package smpp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// BenchmarkSend measures submit_sm to submit_sm_resp over loopback, the SMSC in the
// same process and on the same cores. One operation is one message of one segment.
func BenchmarkSend(b *testing.B) {
	for _, window := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			srv := startServer(b, smpptest.Config{})
			cfg := fastConfig(srv.Addr())
			cfg.Window = window
			benchmarkSend(b, startClient(b, cfg), window)
		})
	}
	b.Run("window=100/binds=2", func(b *testing.B) {
		srv := startServer(b, smpptest.Config{})
		cfg := fastConfig(srv.Addr())
		cfg.Binds = 2
		benchmarkSend(b, startClient(b, cfg), 200)
	})
}

func benchmarkSend(b *testing.B, c *Client, senders int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	message := submission(7)
	message.Latest = time.Now().Add(time.Hour) // as on a channel with a limit
	b.ReportAllocs()
	b.ResetTimer()
	for range senders {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if r := c.Send(b.Context(), message); r.Outcome != provider.Accepted {
					b.Errorf("%v: %v", r.Outcome, r.Err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
}

// BenchmarkReceipts measures deliver_sm with a receipt to deliver_sm_resp over loopback, the SMSC
// in the same process and on the same cores. One operation is one receipt.
func BenchmarkReceipts(b *testing.B) {
	srv := startServer(b, smpptest.Config{})
	cfg := fastConfig(srv.Addr())
	all := make(chan struct{})
	var taken atomic.Int64
	cfg.OnReceipt = atOnce(func(provider.Receipt) bool {
		if taken.Add(1) == int64(b.N) {
			close(all)
		}
		return true
	})
	startClient(b, cfg)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		srv.SendReceipt(smpptest.Submit{
			SystemID: "acme", MessageID: "0123456789abcdef", To: "447700900123", From: "ACME",
		}, "DELIVRD")
	}
	<-all
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
}

// BenchmarkParseReceipt measures the reading of a receipt that has all its data in the text.
func BenchmarkParseReceipt(b *testing.B) {
	m := textReceipt(
		"id:0123456789 sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:DELIVRD " +
			"err:000 text:Your code is")
	cfg := new(Config)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := cfg.parseReceipt(&m, time.Time{}); !ok {
			b.Fatal("not read")
		}
	}
}
