package smpp

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

func TestAQueryNamesTheReferenceAndTheSenderThatWasSent(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Queries: true}})
	cfg := fastConfig(srv.Addr())
	cfg.SourceRules = []SourceRule{{From: "60777"}} // the SMSC compares the sender that was sent
	c := startClient(t, cfg)
	s := submission(1)
	reference := send(c, s).Reference
	source, err := c.cfg.sourceBy(c.cfg.sourceRule(s.From, s.To), s.From)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.query(t.Context(), reference, source); err != nil ||
		r.State != provider.Pending || r.Code != "ENROUTE" || r.Reference != reference ||
		r.At.IsZero() {
		t.Errorf("before delivery: %+v, %v", r, err)
	}
	deleted := func(smpptest.Submit) string { return "DELETED" }
	srv.SetBehaviour(smpptest.Behaviour{Queries: true, QueryState: deleted})
	if r, err := c.query(t.Context(), reference, source); err != nil ||
		r.State != provider.Undelivered || r.Cause != provider.Deleted {
		t.Errorf("after it was deleted: %+v, %v", r, err)
	}
	for name, named := range map[string]struct {
		reference string
		source    pdu.Address
	}{"an unknown id": {"none", source}, "another sender": {reference, pdu.Address{}}} {
		_, err := c.query(t.Context(), named.reference, named.source)
		if status, ok := errors.AsType[*StatusError](err); !ok || status.Status == pdu.StatusOK ||
			strings.Contains(err.Error(), "447700") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQueriesThatAreNotAnsweredFail(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	c := startClient(t, fastConfig(srv.Addr()))
	if _, err := c.query(t.Context(), "1", pdu.Address{}); !errors.As(err, new(*StatusError)) {
		t.Errorf("an SMSC without query_sm: %v", err)
	}
	srv.SetBehaviour(smpptest.Behaviour{Silent: true})
	short, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	if _, err := c.query(short, "1", pdu.Address{}); !errors.Is(err, errNotAnswered) {
		t.Errorf("a silent SMSC: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	srv.SetBehaviour(smpptest.Behaviour{})
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.query(t.Context(), "1", pdu.Address{}); !errors.Is(err, errNoBind) {
		t.Errorf("after Close: %v", err)
	}
}

func TestQueriesUnderWayEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	client, peer := startRaw(t, Config{ResponseTimeout: time.Hour})
	done := make(chan error, 1)
	go func() {
		_, err := client.query(t.Context(), "1", pdu.Address{})
		done <- err
	}()
	peer.expect(pdu.CommandQuerySM)
	_ = peer.conn.Close()
	if err := next(t, done); !errors.Is(err, errNotAnswered) {
		t.Errorf("error %v", err)
	}
}

// TestMissingReceiptsAreQueried: the carrier loses every receipt but knows the states.
func TestMissingReceiptsAreQueried(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	srv := startServer(t, smpptest.Config{
		Log: -1,
		Behaviour: smpptest.Behaviour{Queries: true, QueryState: func(smpptest.Submit) string {
			if asked.Add(1) <= 2 {
				return "ENROUTE" // queried again
			}
			return "UNDELIV"
		}},
	})
	taken := make(chan provider.Receipt, 10)
	cfg := fastConfig(srv.Addr())
	cfg.QueryAfter = 20 * time.Millisecond
	cfg.OnReceipt = atOnce(func(r provider.Receipt) bool { taken <- r; return true })
	c := startClient(t, cfg)
	long := submission(1)
	long.Text = strings.Repeat("Your code is 123456. ", 10)
	result := send(c, long)
	references := map[string]bool{}
	for _, p := range result.Parts {
		references[p.Reference] = true
	}
	if len(references) != 2 {
		t.Fatalf("result %+v", result)
	}
	for range 2 {
		r := next(t, taken)
		if !references[r.Reference] || r.State != provider.Undelivered {
			t.Errorf("receipt %+v", r)
		}
		delete(references, r.Reference)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("queried %d times, want 4", n)
	}
}

// TestMessagesWithAReceiptAreNotQueried: and no message is queried forever.
func TestMessagesWithAReceiptAreNotQueried(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	h := newReceiptQueries(&Client{cfg: Config{QueryAfter: time.Minute}})
	queries := 0
	h.query = func(context.Context, string, pdu.Address) (provider.Receipt, error) {
		queries++
		return provider.Receipt{}, errUnreadable
	}
	for _, reference := range []string{"a", "", "b"} {
		h.expect(reference, pdu.Address{}, now)
	}
	h.received("a")
	if _, wait := h.next(now); wait != time.Minute {
		t.Errorf("due in %v", wait)
	}
	r, wait := h.next(now.Add(time.Minute))
	if r.reference != "b" || wait != 0 {
		t.Fatalf("%+v is due, in %v", r, wait)
	}
	for range maxQueries {
		h.ask(t.Context(), r)
		var wait time.Duration
		if r, wait = h.next(time.Now().Add(time.Hour)); wait != 0 {
			break
		}
	}
	if queries != maxQueries || len(h.queue) != 0 || len(h.open) != 0 {
		t.Errorf("%d queries, %d queued, %d open", queries, len(h.queue), len(h.open))
	}
}

func TestReceiptQueriesAreBounded(t *testing.T) {
	t.Parallel()
	h := newReceiptQueries(&Client{cfg: Config{QueryAfter: time.Minute}})
	expect := func(n int) {
		for i := range n {
			h.expect(strconv.Itoa(i), pdu.Address{}, time.Now())
		}
	}
	expect(maxAwaited + 1)
	if len(h.queue) != maxAwaited || len(h.open) != maxAwaited {
		t.Errorf("%d are remembered, %d of them without a receipt", len(h.queue), len(h.open))
	}
	// Those with a receipt do not count, though they stay in the queue until they are due.
	for range 3 {
		for reference := range maps.Clone(h.open) {
			h.received(reference)
		}
		expect(maxAwaited)
		if len(h.queue) > 2*maxAwaited || len(h.open) != maxAwaited {
			t.Errorf("%d are remembered, %d of them without a receipt", len(h.queue), len(h.open))
		}
	}
}

// TestAnOutageUsesUpNoQueries: without a bind, the query that is due is made when there is one.
func TestAnOutageUsesUpNoQueries(t *testing.T) {
	t.Parallel()
	h := newReceiptQueries(&Client{cfg: Config{QueryAfter: time.Minute}})
	h.query = func(context.Context, string, pdu.Address) (provider.Receipt, error) {
		return provider.Receipt{}, errNoBind
	}
	now := time.Now()
	h.expect("a", pdu.Address{}, now)
	for range 2 * maxQueries {
		r, wait := h.next(now.Add(time.Minute))
		if r.reference != "a" || wait != 0 || r.queries != 0 {
			t.Fatalf("%+v is due, in %v", r, wait)
		}
		h.ask(t.Context(), r)
	}
}

// TestReceiptQueriesKeepTheirRate: the SMSC answers at once, and a hundred messages have no
// receipt.
func TestReceiptQueriesKeepTheirRate(t *testing.T) {
	t.Parallel()
	for rate, perSecond := range map[int]int{0: DefaultQueryRate, 4: 4} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{
				QueryAfter: time.Minute, QueryRate: rate,
				OnReceipt: atOnce(func(provider.Receipt) bool { return true }),
			}
			delivered := func(smpptest.Submit) string { return "DELIVRD" }
			srv, c := startPiped(t, smpptest.Behaviour{Queries: true, QueryState: delivered}, cfg)
			const messages = 100
			if n := tally(sendMany(c, messages, 8))[provider.Accepted]; n != messages {
				t.Fatalf("%d were accepted", n)
			}
			<-time.After(time.Minute + 5*time.Second - time.Millisecond) // inside the bubble
			if n := int(srv.Stats().Queries); n != 5*perSecond {
				t.Errorf("%d queries in five seconds, want %d a second", n, perSecond)
			}
			<-time.After(time.Minute)
			if n := srv.Stats().Queries; n != messages {
				t.Errorf("%d queries for %d messages", n, messages)
			}
			closeIn(t, c)
			srv.Close()
		})
	}
}

// TestMessagesThatAnotherProcessGotTheReceiptOfAreNotQueried: nor any while that cannot be known.
func TestMessagesThatAnotherProcessGotTheReceiptOfAreNotQueried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const messages = 2 * reportedBatch // a second apart, so that they are two batches
		var calls, left atomic.Int64
		queried := make(chan string, messages)
		cfg := Config{
			QueryAfter: time.Minute, QueryRate: maxRate, Window: messages,
			OnReceipt: atOnce(func(r provider.Receipt) bool { queried <- r.Reference; return true }),
			Reported: func(_ context.Context, references []string) ([]string, error) {
				if calls.Add(1) <= 5 {
					return nil, errors.New("no database")
				}
				left.Add(1)
				return references[1:], nil
			},
		}
		srv, c := startPiped(t, smpptest.Behaviour{
			Queries: true, QueryState: func(smpptest.Submit) string { return "DELIVRD" },
		}, cfg)
		for range 2 {
			<-time.After(time.Second)
			if n := tally(sendMany(c, reportedBatch, 1))[provider.Accepted]; n != reportedBatch {
				t.Fatalf("%d were accepted", n)
			}
		}
		<-time.After(time.Minute + 3500*time.Millisecond)
		if n := srv.Stats().Queries; n != 0 || calls.Load() != 5 {
			t.Errorf("%d queries and %d calls without a database", n, calls.Load())
		}
		<-time.After(2 * time.Minute)
		if n := srv.Stats().Queries; n != 2 || left.Load() != 2 || len(queried) != 2 {
			t.Errorf("%d queries after %d good calls, want one for each of 2 batches", n, left.Load())
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestReceiptQueriesUseFreeSlotsOnly: submits fill the window for two minutes.
func TestReceiptQueriesUseFreeSlotsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{
			QueryAfter: time.Minute, Window: 2, ResponseTimeout: time.Hour,
			OnReceipt: atOnce(func(provider.Receipt) bool { return true }),
		}
		behaviour := smpptest.Behaviour{
			Queries: true, QueryState: func(smpptest.Submit) string { return "DELIVRD" },
		}
		srv, c := startPiped(t, behaviour, cfg)
		sendMany(c, 3, 1)
		behaviour.Latency = 2 * time.Minute
		srv.SetBehaviour(behaviour)
		one, two := make(chan provider.Result, 1), make(chan provider.Result, 1)
		go func() { one <- c.Send(t.Context(), submission(8)) }()
		go func() { two <- c.Send(t.Context(), submission(9)) }()
		<-time.After(2*time.Minute - time.Second)
		if n := srv.Stats().Queries; n != 0 {
			t.Errorf("%d queries while the window is full", n)
		}
		<-one
		<-two
		<-time.After(time.Second)
		if n := srv.Stats().Queries; n != 3 {
			t.Errorf("%d queries after a slot was free, want 3", n)
		}
		closeIn(t, c)
		srv.Close()
	})
}

func TestASpareSlotIsOneThatNoSubmitNeeds(t *testing.T) {
	t.Parallel()
	p, s := newPool(2), &session{}
	if _, err := p.takeSpare(); !errors.Is(err, errNoBind) {
		t.Errorf("without a bind: %v", err)
	}
	p.add(s)
	for range 2 {
		if got, err := p.takeSpare(); got != s || err != nil {
			t.Fatalf("%v", err)
		}
	}
	if got := p.leastLoaded(1); s.slots.used != 2 || got != nil {
		t.Errorf("%d slots are used", s.slots.used)
	}
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("with a full window: %v", err)
	}
	p.release(s, 2)
	p.waiting.push(&waiter{slots: 3}) // a message for which no window has room yet
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("before the waiters: %v", err)
	}
	p.waiting.remove(p.waiting.first())
	s.slots.unhealthy = true
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("with an unhealthy bind: %v", err)
	}
}
