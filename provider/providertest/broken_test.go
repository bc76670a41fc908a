package providertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
)

// Each of these breaks one rule of provider.Channel and keeps the others.
// doubleSender sends again if it got no answer.

// doubleSender sends again when it got no answer.
type doubleSender struct{ provider.Channel }

func (c doubleSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause)
		defer cancel()
		c.Channel.Send(again, s)
	}
	return r
}

// lyingSender reports unknown as accepted.
type lyingSender struct{ provider.Channel }

func (c lyingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		return provider.Result{Outcome: provider.Accepted, Reference: "surely"}
	}
	return r
}

// hopefulSender reports a lost answer as refused, so the message would be sent twice.
type hopefulSender struct{ provider.Channel }

func (c hopefulSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		return refused("no_answer")
	}
	return r
}

// talkativeSender shows the recipient, textSender the text, secretSender the password.
type talkativeSender struct{ provider.Channel }

func (c talkativeSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Err = errors.New("send to " + s.To[1:])
	}
	return r
}

type textSender struct{ provider.Channel }

func (c textSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Code = s.Text
	}
	return r
}

type secretSender struct{ provider.Channel }

func (c secretSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Err = errors.New("bind with s3cret")
	}
	return r
}

// crossedSender returns the reference of the previous message.
type crossedSender struct {
	provider.Channel
	mu   *sync.Mutex
	last *string
}

func (c crossedSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Reference, *c.last = *c.last, r.Reference
	return r
}

// shorteningSender truncates a long reference, longSender accepts any.
type shorteningSender struct{ provider.Channel }

func (c shorteningSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.Reference = r.Reference[:min(len(r.Reference), provider.MaxReference/2)]
	return r
}

type longSender struct{ provider.Channel }

func (c longSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Code == "id" {
		return provider.Result{
			Outcome: provider.Accepted, Reference: strings.Repeat("8", provider.MaxReference+1),
		}
	}
	return r
}

// ignoresContextSender does not check its context before it sends.
type ignoresContextSender struct{ provider.Channel }

func (c ignoresContextSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause)
		defer cancel()
		return c.Channel.Send(again, s)
	}
	return c.Channel.Send(ctx, s)
}

// tardySender ignores the latest time.
type tardySender struct{ provider.Channel }

func (c tardySender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Latest = time.Time{}
	return c.Channel.Send(ctx, s)
}

// vagueSender does not report that it was too late.
type vagueSender struct{ provider.Channel }

func (c vagueSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Code == provider.Late {
		r.Code = "not_sent"
	}
	return r
}

// deadlineBlindSender ignores the message's deadline.
type deadlineBlindSender struct{ provider.Channel }

func (c deadlineBlindSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Deadline = time.Time{}
	return c.Channel.Send(ctx, s)
}

// quittingSender stops in the middle of a message at its latest time.
type quittingSender struct{ provider.Channel }

func (c quittingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if !s.Latest.IsZero() {
		short, cancel := context.WithDeadline(ctx, s.Latest)
		defer cancel()
		return c.Channel.Send(short, s)
	}
	return c.Channel.Send(ctx, s)
}

// deafSender does not return when its context ends.
type deafSender struct{ provider.Channel }

func (c deafSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return c.Channel.Send(ctx, s)
	}
	return c.Channel.Send(context.WithoutCancel(ctx), s)
}

// wholeSender sends all parts instead of the missing ones.
type wholeSender struct{ provider.Channel }

func (c wholeSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Parts = nil
	return c.Channel.Send(ctx, s)
}

// recuttingSender sends the requested parts, even of a text that was split differently.
type recuttingSender struct{ provider.Channel }

func (c recuttingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if s.Parts != nil {
		s.Cut = sms.Fingerprint("memory", sms.Split(s.Text, sms.Reference8).Segments)
	}
	return c.Channel.Send(ctx, s)
}

// regroupingSender gives the parts of each attempt a new concatenation reference.
type regroupingSender struct{ provider.Channel }

func (c regroupingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Reference += uint16(s.Attempt)
	return c.Channel.Send(ctx, s)
}

// forgetfulSender does not report which parts were accepted.
type forgetfulSender struct{ provider.Channel }

func (c forgetfulSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.Parts = nil
	return r
}

// blamingSender reports a throttled message as rejected.
type blamingSender struct{ provider.Channel }

func (c blamingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Throttled {
		r.Outcome, r.Parts = provider.Rejected, nil
	}
	return r
}

// lostRetryAfterSender drops the provider's wait.
type lostRetryAfterSender struct{ provider.Channel }

func (c lostRetryAfterSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.RetryAfter = 0
	return r
}

// optimisticChannel is always ready.
type optimisticChannel struct{ provider.Channel }

func (optimisticChannel) Ready() (bool, string) { return true, "" }

// hastyCloser does not wait for submissions in flight.
type hastyCloser struct{ provider.Channel }

func (c hastyCloser) Close(ctx context.Context) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = c.Channel.Close(ended)
	return nil
}

// immortalChannel still sends after Close.
type immortalChannel struct{ provider.Channel }

func (immortalChannel) Close(context.Context) error { return nil }

// onceCloser returns an error on a second Close.
type onceCloser struct {
	provider.Channel
	closed *bool
}

func (c onceCloser) Close(ctx context.Context) error {
	if *c.closed {
		return errors.New("closed twice")
	}
	*c.closed = true
	return c.Channel.Close(ctx)
}

// endlessCloser waits forever.
type endlessCloser struct{ provider.Channel }

func (c endlessCloser) Close(ctx context.Context) error {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.Channel.Close(long)
}

// silentChannel gives no reason for not being ready.
type silentChannel struct{ provider.Channel }

func (c silentChannel) Ready() (bool, string) {
	ok, _ := c.Channel.Ready()
	return ok, ""
}

// mute returns no code and no error.
type mute struct{ provider.Channel }

func (c mute) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.Code, r.Err = "", nil
	return r
}

// lateResender repeats a message that was cut off before it sends the next one, like a resend
// queue.
type lateResender struct {
	provider.Channel
	queue chan provider.Submission
}

func (c lateResender) Send(ctx context.Context, s provider.Submission) provider.Result {
	select {
	case again := <-c.queue:
		c.Channel.Send(ctx, again)
	default:
	}
	r := c.Channel.Send(ctx, s)
	if r.Code == "cut" {
		c.queue <- s
	}
	return r
}
