package receive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider"
)

// verdict is the result of one callback. Its values are label values.
type verdict string

const (
	recorded verdict = "booked"
	replayed verdict = "replayed" // recorded before; it gets the same answer and changes nothing
	empty    verdict = "empty"    // genuine, but without anything to record
	// confirmed: it was the confirmation of a subscription, see confirmer.
	confirmed verdict = "confirmed"
	// The following are refused for good.
	forged    verdict = "forged"
	malformed verdict = "malformed"
	tooLarge  verdict = "too_large"
	noChannel verdict = "unknown_channel"
	badMethod verdict = "bad_method"
	// For the following the provider is asked to call again.

	stale  verdict = "stale"  // its signed time is off, or our clock is
	broken verdict = "broken" // its body was not complete in time
	// notYet: another instance may know the channel already, because it has read a newer version of
	// the routing.
	notYet   verdict = "not_yet_known_channel"
	unusable verdict = "unusable" // the channel's settings cannot be used on this machine
	// busy: too many large bodies at once, too many requests of one address, or the same callback is
	// being recorded.
	busy       verdict = "busy"
	unrecorded verdict = "unbooked" // it could not be recorded in time
	// unconfirmed: the subscription could not be confirmed.
	unconfirmed verdict = "unconfirmed"
)

// statuses are the HTTP statuses of the verdicts.
var statuses = map[verdict]int{
	recorded: http.StatusOK, replayed: http.StatusOK, empty: http.StatusOK, confirmed: http.StatusOK,
	forged: http.StatusForbidden, malformed: http.StatusBadRequest,
	tooLarge:  http.StatusRequestEntityTooLarge,
	noChannel: http.StatusNotFound, badMethod: http.StatusMethodNotAllowed,
	stale: tryAgain, broken: tryAgain, notYet: tryAgain,
	unusable: tryAgain, busy: tryAgain, unrecorded: tryAgain, unconfirmed: tryAgain,
}

// tryAgain is the status for callbacks that may succeed later. Every vendor that repeats callbacks
// does so after a 5xx; Sinch, Vonage and SNS do so after no 4xx but 429. See docs/webhooks.md.
const tryAgain = http.StatusServiceUnavailable

// ServeHTTP answers one callback, after its content is durable.
func (w *Webhooks) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	began := time.Now()
	channel, v, content := w.handle(out, r, began)
	w.metrics.count(channel, v, time.Since(began))
	answer(out, v, content)
}

// handle handles one callback. channel is empty if the callback names no known channel.
func (w *Webhooks) handle(
	out http.ResponseWriter, r *http.Request, now time.Time,
) (channel string, v verdict, content provider.CallbackContent) {
	name, ok := channelOf(r.URL.Path)
	if !ok || !strings.HasPrefix(r.RequestURI, "/") {
		return "", noChannel, content
	}
	listener, known := w.cfg.Channels.Listener(name)
	switch {
	case !known:
		return "", w.unknown.verdict(name, now), content
	case r.Method != http.MethodPost && r.Method != http.MethodGet:
		return name, badMethod, content
	case listener == nil:
		return name, unusable, content
	}
	if aboveShare(r) {
		out.Header().Set("Connection", "close")
		return name, busy, content
	}
	body, release, err := w.read(out, r)
	received(r)
	defer release()
	if err != nil {
		return name, verdictOf(err), content
	}
	callback := callbackOf(r, w.base, body, now)
	content, err = listener.ReadCallback(callback)
	switch {
	case err != nil:
		w.cfg.Trouble("callbacks of "+name, fmt.Errorf("a callback of channel %s was refused: %w",
			name, err))
		return name, verdictOf(err), provider.CallbackContent{}
	case len(content.Receipts)+len(content.Inbound) == 0:
		return name, w.confirm(r.Context(), name, listener, callback), content
	}
	return name, w.record(r.Context(), name, &content), content
}

// confirmer is a CallbackReader whose provider sends a request to confirm the subscription first,
// as SNS does.
type confirmer interface {
	// Confirm answers a callback that is such a request, after the same checks as ReadCallback. It
	// returns false for any other callback.
	Confirm(ctx context.Context, c *provider.Callback) (confirmed bool, err error)
}

// confirm answers a genuine callback without content, if it is a request to confirm.
func (w *Webhooks) confirm(
	ctx context.Context, channel string, l provider.CallbackReader, c *provider.Callback,
) verdict {
	asked, ok := l.(confirmer)
	if !ok {
		return empty
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	switch done, err := asked.Confirm(ctx, c); {
	case err != nil:
		w.cfg.Trouble("callbacks of "+channel, fmt.Errorf("the provider of channel %s could not "+
			"be sent the confirmation of its subscription: %w", channel, err))
		return unconfirmed
	case done:
		return confirmed
	}
	return empty
}

// record records the content of a callback, unless it was recorded before.
func (w *Webhooks) record(
	ctx context.Context, channel string, content *provider.CallbackContent,
) verdict {
	switch w.replays.begin(channel, content.ReplayID, time.Now()) {
	case seenRecorded:
		return replayed
	case seenUnderWay:
		return busy
	case seenNever:
	}
	// A caller that disconnects does not cancel the write.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	done := false
	defer func() { w.replays.end(channel, content.ReplayID, done, time.Now()) }()
	if err := w.cfg.Recorder.Record(ctx, channel, content); err != nil {
		w.cfg.Trouble("callbacks", fmt.Errorf("callbacks cannot be recorded, their providers are "+
			"asked to call again: %w", err))
		return unrecorded
	}
	done = true
	return recorded
}

// callbackOf converts a request. The URL begins with base, which is what the provider called; host
// and scheme of the request may be a proxy's.
func callbackOf(r *http.Request, base string, body []byte, at time.Time) *provider.Callback {
	return &provider.Callback{
		Method: r.Method, URL: base + r.RequestURI, Header: r.Header, Body: body,
		Certificate: r.TLS != nil && len(r.TLS.VerifiedChains) > 0, At: at,
	}
}

// At most maxLarge bodies above smallBody are in memory at a time, because anybody can send them.
const (
	smallBody = 32 << 10
	maxLarge  = 64
)

var (
	errTooLarge = fmt.Errorf("the body is longer than %d bytes", provider.MaxCallback)
	errBusy     = errors.New("too many long callbacks at once")
)

// read returns the body. The caller must call release when it no longer needs the body.
func (w *Webhooks) read(
	out http.ResponseWriter, r *http.Request,
) (body []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > provider.MaxCallback {
		out.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, release, errTooLarge
	}
	limited := http.MaxBytesReader(out, r.Body, provider.MaxCallback)
	body, err = io.ReadAll(io.LimitReader(limited, smallBody))
	if err != nil || len(body) < smallBody {
		return body, release, err
	}
	select {
	case w.large <- struct{}{}:
		release = func() { <-w.large }
	default:
		return nil, release, errBusy
	}
	rest, err := io.ReadAll(limited)
	return append(body, rest...), release, err
}

// verdictOf is the verdict for an error of reading a callback.
func verdictOf(err error) verdict {
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, provider.ErrForged):
		return forged
	case errors.Is(err, provider.ErrStale):
		return stale
	case errors.Is(err, provider.ErrMalformed):
		return malformed
	case errors.As(err, &long), errors.Is(err, errTooLarge):
		return tooLarge
	case errors.Is(err, errBusy):
		return busy
	}
	return broken
}

// retryAfter is the value of Retry-After, in seconds. Some providers ignore it.
const retryAfter = "2"

// answer writes the response. It contains nothing that the caller sent.
func answer(out http.ResponseWriter, v verdict, content provider.CallbackContent) {
	status := statuses[v]
	switch {
	case status == http.StatusOK && content.Answer == "":
		out.WriteHeader(status)
		return
	case status == http.StatusOK:
		out.Header().Set("Content-Type", content.AnswerType)
		out.WriteHeader(status)
		// fails only if the caller has disconnected; the content is recorded
		_, _ = io.WriteString(out, content.Answer)
		return
	case status == tryAgain:
		out.Header().Set("Retry-After", retryAfter)
	case status == http.StatusMethodNotAllowed:
		out.Header().Set("Allow", "GET, POST")
	}
	http.Error(out, http.StatusText(status), status)
}
