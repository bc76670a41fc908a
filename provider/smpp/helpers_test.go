package smpp

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds whatever a test waits for.
const testTimeout = 20 * time.Second

func startServer(t testing.TB, cfg smpptest.Config) *smpptest.Server {
	t.Helper()
	srv, err := smpptest.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// fastConfig connects again within milliseconds.
func fastConfig(addresses ...string) Config {
	return Config{
		Addresses: addresses, SystemID: "acme", Password: "s3cret",
		ReconnectMin: 2 * time.Millisecond, ReconnectMax: 20 * time.Millisecond,
	}
}

// startClient returns a client whose first bind is up.
func startClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c := startUnready(t, cfg)
	eventually(t, "the client is ready", func() bool { ok, _ := c.Ready(); return ok })
	return c
}

func startUnready(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// eventually polls, because a peer's state has no event of its own.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(testTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%v passed before: %s", testTimeout, what)
		}
	}
}

// atOnce is an OnReceipt that answers before it returns.
func atOnce(take func(provider.Receipt) (taken bool)) func(r provider.Receipt, answer func(taken bool)) {
	return func(r provider.Receipt, answer func(taken bool)) { answer(take(r)) }
}

func submission(i int) provider.Submission {
	return provider.Submission{
		ID: fmt.Sprintf("m-%d", i), Attempt: 1, To: fmt.Sprintf("+447700%06d", i), From: "ACME", Text: "Your code is 123456",
	}
}

// send is Send with a bound on the time.
func send(c *Client, s provider.Submission) provider.Result {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	return c.Send(ctx, s)
}
