package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
)

// memoryPeer is a scripted provider without a network.
type memoryPeer struct {
	script Script

	mu  sync.Mutex
	log []Submit // guarded by mu
}

func (p *memoryPeer) submits() []Submit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Submit(nil), p.log...)
}

// answer is the answer to a submit.
type answer struct {
	reply Reply
	retry Answer
	ref   string
}

// submit logs the submit. The returned channel gets the answer, or nothing.
func (p *memoryPeer) submit(s Submit) <-chan answer {
	p.mu.Lock()
	n := len(p.log)
	p.log = append(p.log, s)
	p.mu.Unlock()
	back := make(chan answer, 1)
	a := p.script(n, s)
	reply := answer{reply: a.Reply, retry: a}
	if a.Reply == Accept {
		if reply.ref = a.Reference; reply.ref == "" {
			reply.ref = fmt.Sprintf("ref-%d", n)
		}
		p.mu.Lock()
		p.log[n].Reference = reply.ref
		p.mu.Unlock()
	}
	switch {
	case a.Reply == Lose:
	case a.Hold == nil:
		back <- reply
	default:
		go func() {
			<-a.Hold
			back <- reply
		}()
	}
	return back
}

// memoryChannel is the smallest channel that keeps every rule of provider.Channel.
type memoryChannel struct {
	peer  *memoryPeer   // nil when nothing listens
	slots chan struct{} // one token for each submission in flight

	mu     sync.Mutex
	closed bool           // guarded by mu
	under  sync.WaitGroup // sends in flight; Add under mu
	stop   chan struct{}  // closed when Close has waited long enough
	once   sync.Once
}

var _ provider.Channel = (*memoryChannel)(nil)

func newMemoryChannel(p *memoryPeer) *memoryChannel {
	return &memoryChannel{
		peer: p, slots: make(chan struct{}, maxBefore/2), stop: make(chan struct{}),
	}
}

func (c *memoryChannel) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.under.Add(1)
	return true
}

func refused(code string) provider.Result {
	return provider.Result{Outcome: provider.Refused, Code: code, Err: errors.New(code)}
}

func (c *memoryChannel) Send(ctx context.Context, s provider.Submission) provider.Result {
	switch {
	case ctx.Err() != nil:
		return refused("context_ended")
	case s.Withheld(time.Now()) != "":
		return refused(s.Withheld(time.Now()))
	case !c.enter():
		return refused("closed")
	}
	defer c.under.Done()
	if c.peer == nil {
		return refused("dial")
	}
	if why := c.wait(ctx, &s); why != "" {
		return refused(why)
	}
	defer func() { <-c.slots }()
	m := sms.Split(s.Text, sms.Reference8)
	if len(m.Segments) == 1 {
		return c.part(ctx, Submit{To: s.To})
	}
	wanted, cut := s.Parts, sms.Fingerprint("memory", m.Segments)
	if wanted != nil && s.Cut != cut {
		return refused(provider.Uncomposed)
	}
	if wanted == nil {
		for i := range m.Segments {
			wanted = append(wanted, i)
		}
	}
	all := provider.Result{Cut: cut}
	for _, i := range wanted {
		r := c.part(ctx, Submit{To: s.To, Part: i, Group: s.Reference & 0xFF})
		all.Parts = append(all.Parts,
			provider.Part{Index: i, Outcome: r.Outcome, Reference: r.Reference, Code: r.Code})
		if r.Outcome != provider.Accepted {
			all.Code, all.Err = r.Code, r.Err
			break
		}
	}
	all.Outcome = provider.Combine(all.Parts)
	return all
}

// wait waits until there is room for a submission.
func (c *memoryChannel) wait(ctx context.Context, s *provider.Submission) (why string) {
	var late <-chan time.Time
	if begins := s.Begins(); !begins.IsZero() {
		late = time.After(time.Until(begins))
	}
	select {
	case c.slots <- struct{}{}:
		return ""
	case <-late:
		return s.Withheld(time.Now())
	case <-c.stop:
		return "closed"
	case <-ctx.Done():
		return "context_ended"
	}
}

func (c *memoryChannel) part(ctx context.Context, s Submit) provider.Result {
	select {
	case a := <-c.peer.submit(s):
		return a.result()
	case <-ctx.Done():
		return provider.Result{Code: "timeout", Err: errors.New("no answer in time")}
	case <-c.stop:
		return provider.Result{Code: "closed", Err: errors.New("closed without an answer")}
	}
}

func (a answer) result() provider.Result {
	switch a.reply {
	case Accept:
		if len(a.ref) > provider.MaxReference {
			return provider.Result{Code: "id", Err: errors.New("the id is too long")}
		}
		return provider.Result{Outcome: provider.Accepted, Reference: a.ref}
	case Reject:
		return provider.Result{
			Outcome: provider.Rejected, Code: "rejected", Err: errors.New("rejected"),
		}
	case Refuse:
		return refused("system_error")
	case Throttle:
		return provider.Result{
			Outcome: provider.Throttled, Code: "throttled", RetryAfter: a.retry.RetryAfter,
			Err: errors.New("slow down"),
		}
	case Cut, Lose:
	}
	return provider.Result{Code: "cut", Err: errors.New("connection lost")}
}

func (c *memoryChannel) Ready() (bool, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return false, "closed"
	case c.peer == nil:
		return false, "connecting"
	}
	return true, ""
}

func (c *memoryChannel) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() { c.under.Wait(); close(idle) }()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.once.Do(func() { close(c.stop) })
	<-idle
	return err
}

// memoryHarness runs the suite over memoryChannel, wrapped by broken when it is set.
func memoryHarness(broken func(provider.Channel) provider.Channel) Harness {
	return Harness{
		Segments: true, RetryAfter: true, Secrets: []string{"s3cret"}, Deadline: 2 * pause,
		Start: func(t testing.TB, script Script) Instance {
			t.Helper()
			var peer *memoryPeer
			submits := func() []Submit { return nil }
			if script != nil {
				peer = &memoryPeer{script: script}
				submits = peer.submits
			}
			inner := newMemoryChannel(peer)
			t.Cleanup(func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = inner.Close(ctx) // ends what a failed check left in flight
			})
			var ch provider.Channel = inner
			if broken != nil {
				ch = broken(ch)
			}
			return Instance{Channel: ch, Submits: submits}
		},
	}
}
