package main

import (
	"context"
	"sync"
	"testing"

	"dispatcher/ledger"
)

// keptOpen are the ledgers that the commands of tests leave open for the next commands of the same
// test. In a new session the first plan of each statement takes most of the time of a command,
// because PostgreSQL reads the definitions of all days. Commands that run at once have ledgers of
// their own, as outside of tests.
var keptOpen = ledgers{idle: map[testing.TB]map[session][]*ledger.Ledger{}}

type ledgers struct {
	mu   sync.Mutex
	idle map[testing.TB]map[session][]*ledger.Ledger // guarded by mu
}

// session is what the sessions of commands differ in.
type session struct{ url, region string }

// opener opens the ledger for commands of a test.
func (o *ledgers) opener(t testing.TB) opener {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.idle[t] == nil {
		o.idle[t] = map[session][]*ledger.Ledger{}
		t.Cleanup(func() { o.close(t) })
	}
	return func(ctx context.Context, c ledger.Config) (*ledger.Ledger, func(), error) {
		of := session{c.URL, c.Region}
		l := o.take(t, of)
		if l != nil {
			if _, err := l.Clock(ctx); err != nil { // its server was stopped in between
				l.Close()
				l = nil
			}
		}
		if l == nil {
			var err error
			if l, err = ledger.Connect(ctx, c); err != nil {
				return nil, nil, err
			}
		}
		return l, func() { o.give(t, of, l) }, nil
	}
}

// take returns a ledger that no command uses; nil if there is none.
func (o *ledgers) take(t testing.TB, of session) *ledger.Ledger {
	o.mu.Lock()
	defer o.mu.Unlock()
	idle := o.idle[t][of]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	o.idle[t][of] = idle[:last]
	return idle[last]
}

func (o *ledgers) give(t testing.TB, of session, l *ledger.Ledger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.idle[t] == nil { // the test is over
		l.Close()
		return
	}
	o.idle[t][of] = append(o.idle[t][of], l)
}

// close closes the ledgers of a test that is over.
func (o *ledgers) close(t testing.TB) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, all := range o.idle[t] {
		for _, l := range all {
			l.Close()
		}
	}
	delete(o.idle, t)
}
