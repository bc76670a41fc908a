package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestEverythingLeavesAServerThatWasReplaced, although the old primary runs, answers, accepts
// writes, and is the first host of the address: the connections of the pools, of the publisher, and
// of Watch.
func TestEverythingLeavesAServerThatWasReplaced(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	pair := ledgertest.NewPair(t)
	if err := migrations.Migrate(t.Context(), pair.URL("")); err != nil {
		t.Fatal(err)
	}
	l := connect(t, ledger.Config{URL: pair.URL("")})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, l, batch("before", 1), "a")
	if lead, err := l.Outbox.Lead(t.Context()); err != nil || !lead {
		t.Fatal(lead, err)
	}
	watching := make(chan error, 1)
	listening := make(chan struct{}, 1)
	go func() {
		watching <- l.Routing.Watch(t.Context(), func() error {
			listening <- struct{}{}
			return nil
		})
	}()
	<-listening

	pair.Promote(t)
	pair.Do(t, pair.Primary, `set synchronous_commit = local`,
		`alter system reset synchronous_standby_names`, `select pg_reload_conf()`)
	select {
	case err := <-watching:
		if !ledger.Unavailable(err) {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(tier.LongestWait):
		t.Error("somebody still waits for the old primary to tell of a new routing")
	}
	claimAll(t, l, batch("after", 1), "a")
	if lead, err := l.Outbox.Lead(t.Context()); err != nil || !lead {
		t.Fatal(lead, err)
	}
	successor, old := raw(t, pair.Standby.URL()), raw(t, pair.Primary.URL())
	if n := scalar[int](t, successor, `select count(*) from dispatcher.all_attempts`); n != 2 {
		t.Errorf("the successor has %d attempts, want both", n)
	}
	if n := scalar[int](t, old, `select count(*) from dispatcher.all_attempts`); n != 1 {
		t.Errorf("the old primary has %d attempts, want that of before", n)
	}
	if n := scalar[int](t, successor,
		`select count(*) from pg_locks where locktype = 'advisory' and granted`); n == 0 {
		t.Error("nobody publishes on the successor")
	}
}

// TestAServerThatHangsHoldsUpNothingForLong: connections stay open and get no answers, as when a
// disk hangs or a host is paused.
func TestAServerThatHangsHoldsUpNothingForLong(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	w, tapped := tap(t, url)
	l := connect(t, ledger.Config{URL: tapped})
	if !tier.Long() {
		l.Hurry(5 * time.Second)
	}
	if lead, err := l.Outbox.Lead(t.Context()); err != nil || !lead {
		t.Fatal(lead, err)
	}
	listening := make(chan struct{}, 1)
	ended := make(chan error, 2)
	go func() {
		ended <- l.Routing.Watch(t.Context(), func() error { listening <- struct{}{}; return nil })
	}()
	<-listening
	w.silent.Store(true)
	go func() {
		_, err := l.Outbox.Publish(t.Context(), 10, func(context.Context, []ledger.Notice) error {
			return errors.New("there is nothing to send")
		})
		ended <- err
	}()
	for range 2 {
		select {
		case err := <-ended:
			if !ledger.Unavailable(err) {
				t.Error(err)
			}
		case <-time.After(tier.LongestWait):
			t.Fatal("somebody waits for a server that hangs")
		}
	}
}

// TestNothingIsPublishedThatMayBeLost: neither from a read-only server, which could not delete it
// afterwards, nor before the standby has it.
func TestNothingIsPublishedThatMayBeLost(t *testing.T) {
	t.Parallel()
	server, beside, l := deserted(t, nil)
	execute(t, beside, `insert into dispatcher.outbox (kind, keys, "values")
		values ('status', '{m}', array['x'::bytea])`)
	said := 0
	send := func(context.Context, []ledger.Notice) error { said++; return nil }
	publish := func(l *ledger.Ledger) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return l.Outbox.Publish(ctx, 10, send)
	}
	standby, err := ledger.Connect(t.Context(), ledger.Config{
		URL: server.URL() + "&options=-c%20default_transaction_read_only%3Don",
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := publish(standby); !ledger.Unavailable(err) || said > 0 {
		t.Errorf("from a server that takes no writes: %d, %v", n, err)
	}
	standby.Close()
	enough := ledgertest.WaitForNobody(t, server.URL())
	if n, err := publish(l); !ledger.Unavailable(err) || said > 0 {
		t.Errorf("before the standby has it: %d, %v", n, err)
	}
	enough()
	tier.Eventually(t, "the notice is published", func() bool {
		n, err := publish(l)
		return err == nil && n == 1 && said == 1
	})
}
