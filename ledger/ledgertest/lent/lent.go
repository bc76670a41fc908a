// Package lent gives tests open ledgers over empty databases. The tests of a process use them one
// after the other, because new sessions and their first plans take most of the time of a small
// test.
package lent

import (
	"context"
	"sync"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// lent is a ledger that outlives its tests.
type lent struct {
	*ledger.Ledger
	url   string
	empty func(context.Context) error
}

var free struct {
	mu sync.Mutex
	// of are the ledgers that no test uses at the moment, by their configuration with the role in
	// place of the URL; guarded by mu
	of map[ledger.Config][]*lent
}

// Ledger returns a ledger for this test alone, and the URL of its database, which has no rows. c
// says how to connect, with the role of the sessions in place of the URL; an empty role means the
// owner. A test may close the ledger, and must do so if it ends its sessions from outside.
func Ledger(t testing.TB, c ledger.Config) (*ledger.Ledger, string) {
	t.Helper()
	l := take(c)
	if l == nil {
		l = open(t, c)
	}
	t.Cleanup(func() {
		// t.Context has ended when cleanups run.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() || l.Instances.Leave(ctx) != nil || l.Ping(ctx) != nil || l.empty(ctx) != nil {
			l.Close()
			return
		}
		give(c, l)
	})
	return l.Ledger, l.url
}

func open(t testing.TB, c ledger.Config) *lent {
	t.Helper()
	l := &lent{}
	l.url, l.empty = ledgertest.Lasting(t)
	role := c.URL
	if c.URL = l.url; role != "" {
		c.URL = ledgertest.As(role, l.url)
	}
	var err error
	if l.Ledger, err = ledger.Connect(context.WithoutCancel(t.Context()), c); err != nil {
		t.Fatal(err)
	}
	return l
}

// take returns nil if all are in use.
func take(c ledger.Config) *lent {
	free.mu.Lock()
	defer free.mu.Unlock()
	all := free.of[c]
	if len(all) == 0 {
		return nil
	}
	last := len(all) - 1
	free.of[c] = all[:last]
	return all[last]
}

func give(c ledger.Config, l *lent) {
	free.mu.Lock()
	defer free.mu.Unlock()
	if free.of == nil {
		free.of = map[ledger.Config][]*lent{}
	}
	free.of[c] = append(free.of[c], l)
}

// Close closes all ledgers after the last test; it is for ledgertest.Main.
func Close() {
	free.mu.Lock()
	defer free.mu.Unlock()
	for _, all := range free.of {
		for _, l := range all {
			l.Close()
		}
	}
	free.of = nil
}
