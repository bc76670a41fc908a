package receive_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// bound binds a client to an SMSC whose receipts go to a batcher, as in the application. cut ends
// its connection without an unbind.
func bound(t testing.TB, carrier *smpptest.Server, d *receive.Batcher) (cut func()) {
	t.Helper()
	client, err := smpp.New(smpp.Config{
		Addresses: []string{carrier.Addr()}, SystemID: "acme", Password: "s3cret",
		ReconnectMin: time.Millisecond,
		OnReceipt:    func(r provider.Receipt, answer func(taken bool)) { d.Take("a", r, answer) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Close(ended)
	}
}

func sendReceipts(carrier *smpptest.Server, references ...string) {
	for _, reference := range references {
		carrier.SendReceipt(smpptest.Submit{
			SystemID: "acme", MessageID: reference,
			To: "447700900123", From: "ACME",
		}, "DELIVRD")
	}
}

// TestReceiptsOfAProcessThatDiesBeforeTheCommitComeAgain: a process has receipts in memory, in the
// queue and in a transaction that never commits, and dies. The SMSC has no response to any of them,
// and sends them all to the next process.
func TestReceiptsOfAProcessThatDiesBeforeTheCommitComeAgain(t *testing.T) {
	t.Parallel()
	const n = 1200 // more than two transactions hold
	carrier, err := smpptest.Start(smpptest.Config{Log: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	var references []string
	for i := range n {
		references = append(references, fmt.Sprintf("id-%d", i))
	}

	dead := &stuckStore{stuck: make(chan struct{})}
	first, endFirst := stuckBatcher(t, dead)
	t.Cleanup(endFirst)
	cut := bound(t, carrier, first)
	sendReceipts(carrier, references...)
	tier.Eventually(t, "all receipts are with the first process", func() bool {
		return carrier.Stats().ReceiptsSent >= n
	})
	if s := carrier.Stats(); s.ReceiptsTaken != 0 {
		t.Errorf("%d receipts were acknowledged before they were stored", s.ReceiptsTaken)
	}
	cut()
	close(dead.stuck) // too late for any response

	b := &stuckStore{stuck: dead.stuck}
	second, endSecond := stuckBatcher(t, b)
	t.Cleanup(endSecond)
	t.Cleanup(bound(t, carrier, second))
	tier.Eventually(t, "all receipts are settled", func() bool {
		return carrier.Stats().ReceiptsTaken == n
	})
	for _, reference := range references {
		if !b.has(reference) {
			t.Fatalf("%s was acknowledged but not stored", reference)
		}
	}
}

// TestAReceiptOverSMPPThatNamesNoMessageIsCounted: it is acknowledged, because a repetition would
// not help.
func TestAReceiptOverSMPPThatNamesNoMessageIsCounted(t *testing.T) {
	t.Parallel()
	carrier, err := smpptest.Start(smpptest.Config{Log: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	b := &journalStore{}
	d, registry, end := batcher(t, b)
	t.Cleanup(end)
	t.Cleanup(bound(t, carrier, d))
	tier.Eventually(t, "the client is bound", func() bool { return carrier.Stats().Binds == 1 })
	for _, text := range []string{
		"stat:DELIVRD err:000", "\x00i\x00d\x00:\x007",
		"id:7\x7f stat:DELIVRD",
	} {
		carrier.Deliver(pdu.Message{ESMClass: pdu.ESMClassReceipt, ShortMessage: []byte(text)})
	}
	const metric = "dispatcher_provider_receipts_total"
	tier.Eventually(t, "all are counted", func() bool {
		return count(t, registry, metric, "a", "nameless") == 3
	})
	if n := b.holds(); n != 0 {
		t.Errorf("%d were stored", n)
	}
}

// TestWhatIsAcknowledgedOverSMPPIsStored: at every moment.
func TestWhatIsAcknowledgedOverSMPPIsStored(t *testing.T) {
	t.Parallel()
	const n = 3000
	carrier, err := smpptest.Start(smpptest.Config{Log: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	b := &stuckStore{stuck: make(chan struct{})}
	close(b.stuck)
	d, end := stuckBatcher(t, b)
	t.Cleanup(end)
	t.Cleanup(bound(t, carrier, d))
	for i := range n {
		sendReceipts(carrier, fmt.Sprintf("id-%d", i))
	}
	tier.Eventually(t, "all receipts are settled", func() bool {
		acknowledged := carrier.Stats().ReceiptsTaken // read first
		if stored := b.holds(); int(acknowledged) > stored {
			t.Fatalf("%d are acknowledged, %d stored", acknowledged, stored)
		}
		return acknowledged == n
	})
}
