package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// collect publishes until nothing is left, and returns the notices in order.
func collect(t testing.TB, l *ledger.Ledger) []ledger.Notice {
	t.Helper()
	var all []ledger.Notice
	for {
		n, err := l.Outbox.Publish(t.Context(), 100,
			func(_ context.Context, notices []ledger.Notice) error {
				all = append(all, notices...)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
	}
}

func TestPublishKeepsTheOrderOfEachMessage(t *testing.T) {
	t.Parallel()
	url := lend(t).url
	l := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	var workers sync.WaitGroup
	for worker := range 6 {
		workers.Go(func() {
			for round := range 10 {
				tell(t, l, batch(fmt.Sprintf("w%d-%d", worker, round), 5))
			}
		})
	}
	var published []ledger.Notice
	done := make(chan struct{})
	go func() {
		defer close(done)
		workers.Wait()
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		published = append(published, collect(t, l)...)
	}
	last := map[string]string{}
	for _, n := range published {
		if was, is := last[n.Key], string(n.Value); (was == "" && is != "sending") ||
			(was == "sending" && is != "accepted") {
			t.Fatalf("%q follows %q", is, was)
		}
		last[n.Key] = string(n.Value)
	}
	if len(last) != 300 || len(published) != 600 {
		t.Errorf("%d messages, %d notices", len(last), len(published))
	}
}

// tell claims and settles messages with a notice for each step.
func tell(t testing.TB, l *ledger.Ledger, messages []ledger.Message) {
	var shown []ledger.Message
	err := runClaim(t.Context(), l, ledger.Claim{Messages: messages, Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			shown = seen.Messages
			d, err := give(seen)
			for i := range messages {
				d.Notices = append(d.Notices, ledger.Notice{
					Kind: ledger.Status, Key: messages[i].ID, Value: []byte("sending"),
				})
			}
			return d, err
		})
	if err != nil {
		t.Error(err)
		return
	}
	settlements := accepted(shown)
	for i := range settlements {
		settlements[i].Notice.Value = []byte("accepted")
	}
	if err := l.Settlements.Settle(t.Context(), settlements); err != nil {
		t.Error(err)
	}
}

func TestPublishKeepsKindsAndHeaders(t *testing.T) {
	t.Parallel()
	l := open(t)
	want := []ledger.Notice{
		{Kind: ledger.Status, Key: "m", Value: []byte("one")},
		{Kind: ledger.Status, Key: "n", Value: []byte("two"), Headers: []ledger.Header{
			{Key: "lane", Value: "otp"},
		}},
		{Kind: ledger.Letter, Key: "m", Value: []byte{0, 0xff}, Headers: []ledger.Header{
			{Key: "reason", Value: "bad_json"}, {Key: "offset", Value: "7"},
		}},
	}
	err := runClaim(t.Context(), l, ledger.Claim{
		Messages: []ledger.Message{message("m")},
		Channels: []string{"a"},
	}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d, err := give(seen)
		d.Notices = []ledger.Notice{want[2], want[0], want[1]}
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, l)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Notice{}, "Seq", "At")); diff != "" {
		t.Error(diff)
	}
}

func TestPublishRepeatsWhatCouldNotBeSent(t *testing.T) {
	t.Parallel()
	l := open(t)
	tell(t, l, batch("m", 3))
	away := errors.New("kafka is away")
	if n, err := l.Outbox.Publish(t.Context(), 100, func(context.Context, []ledger.Notice) error {
		return away
	}); n != 0 || !errors.Is(err, away) {
		t.Fatalf("%d, %v", n, err)
	}
	if waiting, age, err := l.Outbox.Unpublished(t.Context()); waiting != 6 || age <= 0 ||
		err != nil {
		t.Errorf("%d wait for %s, %v", waiting, age, err)
	}
	if got := collect(t, l); len(got) != 6 {
		t.Errorf("%d notices", len(got))
	}
}

func TestPublishTakesAboutAsManyAsAskedAndAtLeastOneTransaction(t *testing.T) {
	t.Parallel()
	l := open(t)
	for i := range 4 {
		tell(t, l, batch(fmt.Sprint("m", i), 5)) // two transactions of five notices each
	}
	for _, want := range []struct{ limit, got int }{{1, 5}, {11, 15}, {100, 20}, {100, 0}} {
		n, err := l.Outbox.Publish(t.Context(), want.limit,
			func(context.Context, []ledger.Notice) error {
				return nil
			})
		if err != nil || n != want.got {
			t.Errorf("limit %d: %d notices, %v", want.limit, n, err)
		}
	}
}

func TestOneInstancePublishesAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	first, second := rig.l, connect(t, ledger.Config{URL: rig.url})
	apply(t, first, ledger.ChannelSpec{Name: "a"})
	if leads, err := first.Outbox.Lead(t.Context()); !leads || err != nil {
		t.Fatalf("%t, %v", leads, err)
	}
	tell(t, first, batch("m", 2))
	if got := collect(t, second); got != nil {
		t.Fatal("two instances publish")
	}
	// The leader's session is lost while it publishes: it has sent, and cannot remove any more.
	db := rig.db
	_, err := first.Outbox.Publish(t.Context(), 100, func(context.Context, []ledger.Notice) error {
		_, err := db.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_locks
			where locktype = 'advisory' and granted
			and database = (select oid from pg_database where datname = current_database())`)
		return err
	})
	if err != nil {
		t.Errorf("what was sent is reported as %v", err)
	}
	deadline := time.Now().Add(tier.LongestWait)
	for {
		leads, err := second.Outbox.Lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if leads {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody took over")
		}
	}
	if got := collect(t, second); len(got) != 4 {
		t.Errorf("%d notices came again", len(got))
	}
	lost, err := first.Outbox.Publish(t.Context(), 100,
		func(context.Context, []ledger.Notice) error {
			return nil
		})
	if lost != 0 || !ledger.Unavailable(err) {
		t.Errorf("the lost leader publishes still: %d, %v", lost, err)
	}
	if got := collect(t, first); got != nil {
		t.Error("the lost leader leads again beside the new one")
	}
}
