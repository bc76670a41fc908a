package receive_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
	"dispatcher/provider/sinch"
	"dispatcher/provider/sinch/sinchtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// BenchmarkReceiptsByWebhook measures signed callbacks per second over real connections into a
// durable database, each with the receipt that ends a message, and how long a provider waits for
// its answer. Claims and settlements are not timed. The target is 2 000 a second on two cores.
func BenchmarkReceiptsByWebhook(b *testing.B) {
	const callers = 128
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
	channel, shape := sinchAccount(b)
	hooks, err := receive.ListenWebhooks(b.Context(), receive.WebhookConfig{
		Address: "127.0.0.1:0", Channels: only{channel}, Recorder: batcherBooker{batcher},
		Registry: prometheus.NewRegistry(), Trouble: func(_ string, err error) {
			b.Log(err)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	hooks.Serve()
	defer hooks.Close(context.Background()) //nolint:errcheck // the end of a benchmark
	calls := make(chan *http.Request, b.N)
	for from := 0; from < b.N; from += 500 {
		for _, reference := range acceptedMessages(b, l, from, min(500, b.N-from)) {
			r, err := shape.Receipt(&webtest.Submit{
				To: "+447700900123", Reference: reference,
				Callback: hooks.Callback("a"),
			}, webtest.Receipt{State: provider.Delivered})
			if err != nil {
				b.Fatal(err)
			}
			calls <- r
		}
	}
	close(calls)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	took := make([]time.Duration, 0, b.N)
	var mu sync.Mutex
	var work sync.WaitGroup
	b.ResetTimer()
	for range callers {
		work.Go(func() {
			for r := range calls {
				began := time.Now()
				if response, err := client.Do(r); err != nil {
					b.Error(err)
				} else if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
					b.Errorf("answered %d", response.StatusCode)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	if totals, err := l.Reports.Totals(context.Background()); err != nil ||
		totals.Messages["delivered"] != int64(b.N) {
		b.Errorf("%v of %d delivered, %v", totals.Messages, b.N, err)
	}
}

type only struct{ channel provider.Channel }

func (o only) Listener(name string) (l provider.CallbackReader, known bool) {
	l, known = o.channel.(provider.CallbackReader)
	return l, known && name == "a"
}

type batcherBooker struct{ batcher *receive.Batcher }

func (d batcherBooker) Record(
	ctx context.Context, channel string, content *provider.CallbackContent,
) error {
	return d.batcher.Record(ctx, channel, content.Receipts)
}

// sinchAccount returns an adapter and the carrier's side of its account.
func sinchAccount(b *testing.B) (provider.Channel, webtest.Protocol) {
	b.Helper()
	secret := filepath.Join(b.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		b.Fatal(err)
	}
	channel, err := sinch.Open(map[string]any{
		"service_plan_id": "plan", "token_file": secret,
		"callback_secret_files": secret,
	},
		web.Environment{ReadFile: os.ReadFile, Callback: "https://sms.example.com/receipts/a"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = channel.Close(context.Background()) })
	return channel, sinchtest.New(sinchtest.Config{Plan: "plan", Token: "s3cret", Secret: "s3cret"})
}

// durableLedger returns a ledger on a durable server, with a channel "a".
func durableLedger(b *testing.B) *ledger.Ledger {
	b.Helper()
	s := ledgertest.Server(b, map[string]string{
		"fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on",
	})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Connect(b.Context(), ledger.Config{
		URL: s.URL(), MaxConns: 4, Region: "test",
		Host: b.Name(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	if err := l.Instances.Register(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := l.Routing.Apply(b.Context(), ledger.NewRouting{
		Author:   "test",
		Document: "routes: []", Channels: []ledger.ChannelSpec{{Name: "a"}},
	}); err != nil {
		b.Fatal(err)
	}
	return l
}

// run runs a loop until the end of the benchmark.
func run(b *testing.B, loop func(context.Context)) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { loop(ctx) })
	b.Cleanup(func() { cancel(); done.Wait() })
}

// acceptedMessages claims messages, settles them as accepted with receipts expected, and returns
// their references.
func acceptedMessages(b *testing.B, l *ledger.Ledger, from, n int) (references []string) {
	b.Helper()
	messages := make([]ledger.Message, n)
	for i := range messages {
		id := fmt.Sprintf("m-%08d", from+i)
		messages[i] = ledger.Message{
			ID: id, Lane: "otp", State: ledger.Sending, Origin: ledger.Origin{
				Topic:  "sms.otp",
				Offset: int64(from + i),
			},
			Envelope: []byte(`{"id":"` + id +
				`","to":"+447700900123","text":"Your code is 123456"}`),
			ExpiresAt: time.Now().Add(time.Hour),
			Plan: ledger.Plan{
				Route: "default", Version: 1, Draw: 17, Size: 100, KeyID: "k1",
				FirstChoice: "a", Segments: 1, Alphabet: "gsm7",
			},
		}
	}
	tx, err := l.Claims.Lock(b.Context(), ledger.Claim{Messages: messages, Channels: []string{"a"}})
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
	a := &seen.Channels[0]
	a.Gate.Roll(seen.Now, time.UTC)
	a.LastAssigned = seen.Now
	for i := range seen.Messages {
		a.Gate.Active.Count++
		d.Each[i] = ledger.Decision{
			State: ledger.Sending, Plan: seen.Messages[i].Plan,
			Attempt: ledger.Attempt{
				Number: 1, Channel: "a", Reason: ledger.ByFirstChoice, Segments: 1,
			},
		}
	}
	if err := tx.Commit(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	settlements := make([]ledger.Settlement, n)
	for i, m := range seen.Messages {
		settlements[i] = ledger.Settlement{
			Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Accepted, Reference: "ref-" + m.ID,
			Segments: 1, State: ledger.Accepted, Await: time.Hour,
		}
		references = append(references, settlements[i].Reference)
	}
	if err := l.Settlements.Settle(b.Context(), settlements); err != nil {
		b.Fatal(err)
	}
	return references
}
