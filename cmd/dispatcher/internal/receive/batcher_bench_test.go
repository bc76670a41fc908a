package receive_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
)

// BenchmarkReceiptsBySMPP measures receipts per second from deliver_sm to deliver_sm_resp into a
// durable database, each of which ends a message. Claims and settlements are not timed. The SMSC is
// scripted, in the same process, and sends up to a window of deliver_sm without response. The
// target is 2 000 a second on two cores.
func BenchmarkReceiptsBySMPP(b *testing.B) {
	for _, window := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) { benchmarkReceipts(b, window) })
	}
}

func benchmarkReceipts(b *testing.B, window int) {
	l := durableLedger(b)
	batcher, err := receive.New(receive.Config{
		Store: l.Receipts, Freed: func(int) {},
		Trouble: func(_ string,
			err error,
		) {
			b.Log(err)
		}, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	run(b, batcher.Run)
	frames := receiptFrames(b, l)
	conn := listenFor(b, batcher)
	free, acknowledged := make(chan struct{}, window), pdu.NewReader(conn)
	var reading sync.WaitGroup
	b.ResetTimer()
	reading.Go(func() {
		for range frames {
			if h, _, err := acknowledged.Next(); err != nil ||
				h.Command != pdu.CommandDeliverSMResp || h.Status != pdu.StatusOK {
				b.Errorf("got %+v, error %v", h, err)
				_ = conn.Close()
				return
			}
			<-free
		}
	})
	for _, frame := range frames {
		free <- struct{}{}
		if _, err := conn.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	reading.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
	if totals, err := l.Reports.Totals(context.Background()); err != nil ||
		totals.Messages["delivered"] != int64(b.N) {
		b.Errorf("%v of %d delivered, %v", totals.Messages, b.N, err)
	}
}

// receiptFrames returns deliver_sm PDUs with the receipts of b.N accepted messages.
func receiptFrames(b *testing.B, l *ledger.Ledger) (frames [][]byte) {
	b.Helper()
	for from := 0; from < b.N; from += 500 {
		for i, reference := range acceptedMessages(b, l, from, min(500, b.N-from)) {
			frame, err := pdu.Append(nil, pdu.StatusOK, uint32(from+i+1),
				&pdu.DeliverSM{Message: pdu.Message{
					ESMClass: pdu.ESMClassReceipt, ShortMessage: []byte("id:" + reference +
						" sub:001 dlvrd:001 stat:DELIVRD err:000 text:"),
				}})
			if err != nil {
				b.Fatal(err)
			}
			frames = append(frames, frame)
		}
	}
	return frames
}

// listenFor starts an SMSC that a client with a batcher has bound to.
func listenFor(b *testing.B, batcher *receive.Batcher) net.Conn {
	b.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // One connection is enough.
	client, err := smpp.New(smpp.Config{
		Addresses: []string{listener.Addr().String()}, SystemID: "acme", ReconnectMin: time.Hour,
		EnquireLink: time.Hour,
		OnReceipt: func(r provider.Receipt, answer func(taken bool)) {
			batcher.Take("a", r, answer)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Close(ended)
	})
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	h, _, err := pdu.NewReader(conn).Next()
	if err != nil {
		b.Fatal(err)
	}
	bound, err := pdu.Append(nil, pdu.StatusOK, h.Sequence,
		&pdu.BindResp{Command: pdu.CommandBindTransceiverResp, SystemID: "smsc"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Write(bound); err != nil {
		b.Fatal(err)
	}
	return conn
}
