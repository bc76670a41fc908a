package pipeline

import (
	"context"
	"slices"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider"
)

// lookupChannel is a provider that can look up a submission by its key.
type lookupChannel struct {
	*scriptedChannel
	can  provider.Capabilities
	find func(key string) provider.LookupResult
}

func (c *lookupChannel) Capabilities() provider.Capabilities { return c.can }

func (c *lookupChannel) Find(_ context.Context, key string) provider.LookupResult {
	return c.find(key)
}

// clarifying returns a pipeline with one channel, whose lanes search for a given time.
func clarifying(t *testing.T, channel *lookupChannel, lane decide.Lane) *pipeline {
	t.Helper()
	p := setup(t, func(r *decide.Routing) {
		lane.Name, lane.TTL, lane.MaxWaiting = "bulk", time.Hour, 100
		lane.Clarify = []string{"same_key", "lookup", "receipt"}
		r.Lanes["bulk"] = lane
		for i := range r.Channels {
			r.Channels[i].AwaitReceipts = time.Hour
		}
	})
	channel.scriptedChannel = p.channels["a"]
	next := *p.routing
	next.Version = p.applyRouting(t, nil)
	if err := p.Apply(&next, map[string]provider.Channel{
		"a": channel, "b": channel,
		"c": channel,
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	byVerdict = `select coalesce(verdict, 'open'), count(*) from audit.ambiguous group by 1`
	billedFor = `select coalesce(outcome, 'pending'), sum(segments)::bigint from audit.attempts ` +
		`group by 1`
	duplicates = `select 'flagged', count(*) filter (where possible_duplicate) from audit.messages`
)

func TestASubmissionIsRepeatedUnderItsKeyUntilTheProviderAnswers(t *testing.T) {
	t.Parallel()
	channel := &lookupChannel{can: provider.Capabilities{SameKeyFor: time.Hour}}
	p := clarifying(t, channel, decide.Lane{Lane: config.Lane{ClarifyFor: time.Minute}})
	channel.answer = func(s provider.Submission) provider.Result {
		if s.Attempt < 3 {
			return provider.Result{Code: "timeout"}
		}
		return accepts(s)
	}
	p.handle(t, jobsNamed("m", 1))
	p.eventually(t, byState, map[string]int64{"accepted": 1})
	p.eventually(t, byVerdict, map[string]int64{"taken": 1})
	p.eventually(t, billedFor, map[string]int64{"unknown": 0, "accepted": 1})
	p.eventually(t, duplicates, map[string]int64{"flagged": 0})
	log := channel.submits()
	if len(log) != 3 || log[0].Key == "" || log[1].Key != log[0].Key || log[2].Key != log[0].Key {
		t.Errorf("%d submits, under keys that differ", len(log))
	}
}

// TestARepeatDoesNotReachAnotherAccount changes the settings of the channel while a submission
// waits to be repeated.
func TestARepeatDoesNotReachAnotherAccount(t *testing.T) {
	t.Parallel()
	channel := &lookupChannel{can: provider.Capabilities{SameKeyFor: time.Hour}}
	p := clarifying(t, channel, decide.Lane{Lane: config.Lane{ClarifyFor: 4 * time.Second}})
	channel.answer = func(provider.Submission) provider.Result {
		go func() { // before the repeat, which comes a second later
			next := *p.routing
			next.Channels = slices.Clone(next.Channels)
			for i := range next.Channels {
				next.Channels[i].Account = "another"
			}
			next.Version = p.Dispatcher.routing.Load().Version
			_ = p.Apply(&next, nil)
		}()
		return provider.Result{Code: "timeout"}
	}
	p.handle(t, jobsNamed("m", 1))
	p.eventually(t, byVerdict, map[string]int64{"final": 1})
	p.eventually(t, byState, map[string]int64{"unknown": 1})
	if n := len(channel.submits()); n != 1 {
		t.Errorf("%d submits", n)
	}
}

// TestTheAccountOfAnAttemptIsKnownSinceItsSettingsHold: recovery neither repeats nor looks up an
// attempt at an account that the channel may not have had then.
func TestTheAccountOfAnAttemptIsKnownSinceItsSettingsHold(t *testing.T) {
	t.Parallel()
	p := clarifying(t, &lookupChannel{}, decide.Lane{})
	name, now := p.routing.Channels[0].Name, time.Now()
	apply := func(account string, since time.Time) {
		t.Helper()
		next := *p.routing
		next.Channels = slices.Clone(next.Channels)
		next.Channels[0].Account, next.Since = account, since
		next.Version = p.Dispatcher.routing.Load().Version
		if err := p.Apply(&next, nil); err != nil {
			t.Fatal(err)
		}
	}
	apply("new", now)
	apply("new", now.Add(time.Minute)) // another version with the same settings
	for at, want := range map[time.Time]string{now.Add(-time.Second): "", now: "new"} {
		if got := p.accountAt(name, at); got != want {
			t.Errorf("%s after the change the account is %q, want %q", at.Sub(now), got, want)
		}
	}
}

func TestALookupReturnsTheOutcomeOfASubmission(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		known    provider.LookupState
		state    string
		verdict  string
		submits  int
		receipts map[string]int64
	}{
		"taken":     {provider.Taken, "accepted", "taken", 1, map[string]int64{"expected": 1}},
		"not taken": {provider.NotTaken, "accepted", "not_taken", 2, map[string]int64{"expected": 1}},
		"rejected":  {provider.LookupRejected, "rejected", "not_taken", 1, map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channel := &lookupChannel{can: provider.Capabilities{LookupFor: time.Hour, Receipts: true}}
			asked := make(chan string, 10)
			channel.find = func(key string) provider.LookupResult {
				asked <- key
				return provider.LookupResult{State: tc.known, Reference: "found"}
			}
			p := clarifying(t, channel, decide.Lane{Lane: config.Lane{ClarifyFor: time.Minute}})
			channel.answer = func(s provider.Submission) provider.Result {
				if s.Attempt == 1 {
					return provider.Result{Code: "timeout"}
				}
				return accepts(s)
			}
			p.handle(t, jobsNamed("m", 1))
			p.eventually(t, byVerdict, map[string]int64{tc.verdict: 1})
			p.eventually(t, byState, map[string]int64{tc.state: 1})
			p.eventually(t, duplicates, map[string]int64{"flagged": 0})
			p.eventually(t, `select state, count(*) from dispatcher.receipts group by 1`, tc.receipts)
			p.eventually(t, `select 'billed', count(*) from dispatcher.all_attempts where segments > 0`,
				map[string]int64{"billed": int64(len(tc.receipts))})
			log := channel.submits()
			if len(log) != tc.submits || <-asked != log[0].Key {
				t.Errorf("%d submits", len(log))
			}
		})
	}
}

// TestAnUncertainAccountIsNotAsked: the channel may be connected to another one, where an absent
// submission proves nothing.
func TestAnUncertainAccountIsNotAsked(t *testing.T) {
	t.Parallel()
	channel := &lookupChannel{can: provider.Capabilities{LookupFor: time.Hour}}
	channel.find = func(string) provider.LookupResult {
		t.Error("the provider was asked")
		return provider.LookupResult{State: provider.NotTaken}
	}
	p := clarifying(t, channel, decide.Lane{Lane: config.Lane{
		ClarifyFor: decide.FirstLookup + 2*time.Second,
	}})
	next := *p.routing
	next.Channels = slices.Clone(next.Channels)
	for i := range next.Channels {
		next.Channels[i].Account = ""
	}
	next.Version = p.Dispatcher.routing.Load().Version
	if err := p.Apply(&next, nil); err != nil {
		t.Fatal(err)
	}
	channel.answer = func(provider.Submission) provider.Result {
		return provider.Result{Code: "timeout"}
	}
	p.handle(t, jobsNamed("m", 1))
	p.eventually(t, byVerdict, map[string]int64{"final": 1})
	if n := len(channel.submits()); n != 1 {
		t.Errorf("%d submits", n)
	}
}

func TestASearchWithoutResultEndsAsTheLaneSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		resend  bool
		state   string
		verdict string
		flagged int64
	}{
		"never":  {false, "unknown", "final", 0},
		"resend": {true, "accepted", "resent", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channel := &lookupChannel{can: provider.Capabilities{
				Receipts:     true,
				KeyInReceipt: true,
			}}
			lane := config.Lane{ClarifyFor: time.Second}
			if tc.resend {
				lane.Ambiguous = "resend_once"
			}
			p := clarifying(t, channel, decide.Lane{Lane: lane})
			channel.answer = func(s provider.Submission) provider.Result {
				if s.Attempt == 1 {
					return provider.Result{Code: "timeout"}
				}
				return accepts(s)
			}
			p.handle(t, jobsNamed("m", 1))
			p.eventually(t, byVerdict, map[string]int64{tc.verdict: 1})
			p.eventually(t, byState, map[string]int64{tc.state: 1})
			p.eventually(t, duplicates, map[string]int64{"flagged": tc.flagged})
			p.eventually(t, `select coalesce(reason, ''), count(*) from dispatcher.messages `+
				`group by 1`, map[string]int64{
				map[bool]string{false: "ambiguous_final"}[tc.resend]: 1,
			})
		})
	}
}
