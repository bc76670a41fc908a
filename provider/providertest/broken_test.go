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

// resendingSender sends again when it got no answer.
type resendingSender struct{ provider.Channel }

func (c resendingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause)
		defer cancel()
		c.Channel.Send(again, s)
	}
	return r
}

// unknownAsAcceptedSender reports unknown as accepted.
type unknownAsAcceptedSender struct{ provider.Channel }

func (c unknownAsAcceptedSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		return provider.Result{Outcome: provider.Accepted, Reference: "surely"}
	}
	return r
}

// unknownAsRefusedSender reports a lost answer as refused, so the message would be sent twice.
type unknownAsRefusedSender struct{ provider.Channel }

func (c unknownAsRefusedSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome == provider.Unknown {
		return refused("no_answer")
	}
	return r
}

// leaksNumberSender shows the recipient, leaksTextSender the text, leaksSecretSender the password.
type leaksNumberSender struct{ provider.Channel }

func (c leaksNumberSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Err = errors.New("send to " + s.To[1:])
	}
	return r
}

type leaksTextSender struct{ provider.Channel }

func (c leaksTextSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Code = s.Text
	}
	return r
}

type leaksSecretSender struct{ provider.Channel }

func (c leaksSecretSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Err != nil {
		r.Err = errors.New("bind with s3cret")
	}
	return r
}

// previousReferenceSender returns the reference of the previous message.
type previousReferenceSender struct {
	provider.Channel
	mu   *sync.Mutex
	last *string
}

func (c previousReferenceSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Reference, *c.last = *c.last, r.Reference
	return r
}

// truncatingSender truncates a long reference, anyLengthSender accepts any.
type truncatingSender struct{ provider.Channel }

func (c truncatingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.Reference = r.Reference[:min(len(r.Reference), provider.MaxReference/2)]
	return r
}

type anyLengthSender struct{ provider.Channel }

func (c anyLengthSender) Send(ctx context.Context, s provider.Submission) provider.Result {
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

// ignoresLatestSender ignores the latest time.
type ignoresLatestSender struct{ provider.Channel }

func (c ignoresLatestSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Latest = time.Time{}
	return c.Channel.Send(ctx, s)
}

// lateWithoutCodeSender does not report that it was too late.
type lateWithoutCodeSender struct{ provider.Channel }

func (c lateWithoutCodeSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Code == provider.Late {
		r.Code = "not_sent"
	}
	return r
}

// ignoresDeadlineSender ignores the message's deadline.
type ignoresDeadlineSender struct{ provider.Channel }

func (c ignoresDeadlineSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	s.Deadline = time.Time{}
	return c.Channel.Send(ctx, s)
}

// stopsAtLatestSender stops in the middle of a message at its latest time.
type stopsAtLatestSender struct{ provider.Channel }

func (c stopsAtLatestSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if !s.Latest.IsZero() {
		short, cancel := context.WithDeadline(ctx, s.Latest)
		defer cancel()
		return c.Channel.Send(short, s)
	}
	return c.Channel.Send(ctx, s)
}

// hangingSender does not return when its context ends.
type hangingSender struct{ provider.Channel }

func (c hangingSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return c.Channel.Send(ctx, s)
	}
	return c.Channel.Send(context.WithoutCancel(ctx), s)
}

// wholeTextSender sends all parts instead of the missing ones.
type wholeTextSender struct{ provider.Channel }

func (c wholeTextSender) Send(ctx context.Context, s provider.Submission) provider.Result {
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

// withoutPartsSender does not report which parts were accepted.
type withoutPartsSender struct{ provider.Channel }

func (c withoutPartsSender) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	r.Parts = nil
	return r
}

// throttledAsRejectedSender reports a throttled message as rejected.
type throttledAsRejectedSender struct{ provider.Channel }

func (c throttledAsRejectedSender) Send(ctx context.Context, s provider.Submission) provider.Result {
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

// alwaysReadyChannel is always ready.
type alwaysReadyChannel struct{ provider.Channel }

func (alwaysReadyChannel) Ready() (bool, string) { return true, "" }

// earlyCloser does not wait for submissions in flight.
type earlyCloser struct{ provider.Channel }

func (c earlyCloser) Close(ctx context.Context) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = c.Channel.Close(ended)
	return nil
}

// openAfterCloseChannel still sends after Close.
type openAfterCloseChannel struct{ provider.Channel }

func (openAfterCloseChannel) Close(context.Context) error { return nil }

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

// hangingCloser waits forever.
type hangingCloser struct{ provider.Channel }

func (c hangingCloser) Close(ctx context.Context) error {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.Channel.Close(long)
}

// withoutReasonChannel gives no reason for not being ready.
type withoutReasonChannel struct{ provider.Channel }

func (c withoutReasonChannel) Ready() (bool, string) {
	ok, _ := c.Channel.Ready()
	return ok, ""
}

// unexplainedSender returns no code and no error.
type unexplainedSender struct{ provider.Channel }

func (c unexplainedSender) Send(ctx context.Context, s provider.Submission) provider.Result {
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
