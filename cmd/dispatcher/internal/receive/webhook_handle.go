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

// verdict is what became of one callback. The words are label values.
type verdict string

const (
	booked   verdict = "booked"
	replayed verdict = "replayed" // it was booked before; answered alike, nothing changed
	empty    verdict = "empty"    // genuine, and nothing in it for the dispatcher
	// confirmed: the provider asked whether its calls are wanted, and was told so.
	confirmed verdict = "confirmed"
	// What follows changes nothing.
	forged    verdict = "forged"
	malformed verdict = "malformed"
	tooLarge  verdict = "too_large"
	noChannel verdict = "unknown_channel"
	badMethod verdict = "bad_method"
	// What follows is asked for again.

	stale  verdict = "stale"  // by our clock, which may be the wrong one
	broken verdict = "broken" // its body did not come whole in time
	// notYet: another instance may know the channel already, because it has read a newer version of
	// the routing.
	notYet   verdict = "not_yet_known_channel"
	unusable verdict = "unusable" // the channel's settings cannot be used on this machine
	// busy: too many long bodies at once, or the same callback is under way already.
	busy     verdict = "busy"
	unbooked verdict = "unbooked" // the database did not take it in time
	// unconfirmed: the provider could not be told that its calls are wanted.
	unconfirmed verdict = "unconfirmed"
)

// statuses are what the providers get to see.
var statuses = map[verdict]int{
	booked: http.StatusOK, replayed: http.StatusOK, empty: http.StatusOK, confirmed: http.StatusOK,
	forged: http.StatusForbidden, malformed: http.StatusBadRequest,
	tooLarge:  http.StatusRequestEntityTooLarge,
	noChannel: http.StatusNotFound, badMethod: http.StatusMethodNotAllowed,
	stale: tryAgain, broken: tryAgain, notYet: tryAgain,
	unusable: tryAgain, busy: tryAgain, unbooked: tryAgain, unconfirmed: tryAgain,
}

// tryAgain is the answer to whatever a retry may bring to a good end. Every vendor that calls again
// at all does so after a 5xx, and Sinch, Vonage and SNS after no 4xx but 429; see the table in
// docs/webhooks.md.
const tryAgain = http.StatusServiceUnavailable

// ServeHTTP answers one callback, after what it says is durable.
func (w *Webhooks) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	began := time.Now()
	channel, v, heard := w.handle(out, r, began)
	w.metrics.count(channel, v, time.Since(began))
	answer(out, v, heard)
}

// handle returns the channel when there is one of the name that the callback gives.
func (w *Webhooks) handle(
	out http.ResponseWriter, r *http.Request, now time.Time,
) (channel string, v verdict, heard provider.CallbackContent) {
	name, ok := channelOf(r.URL.Path)
	if !ok || !strings.HasPrefix(r.RequestURI, "/") {
		return "", noChannel, heard
	}
	listener, known := w.cfg.Channels.Listener(name)
	switch {
	case !known:
		return "", w.unknown.verdict(name, now), heard
	case r.Method != http.MethodPost && r.Method != http.MethodGet:
		return name, badMethod, heard
	case listener == nil:
		return name, unusable, heard
	}
	if aboveShare(r) {
		out.Header().Set("Connection", "close")
		return name, busy, heard
	}
	body, release, err := w.read(out, r)
	received(r)
	defer release()
	if err != nil {
		return name, verdictOf(err), heard
	}
	callback := callbackOf(r, w.base, body, now)
	heard, err = listener.ReadCallback(callback)
	switch {
	case err != nil:
		w.cfg.Trouble("callbacks of "+name, fmt.Errorf("a callback of channel %s was refused: %w",
			name, err))
		return name, verdictOf(err), provider.CallbackContent{}
	case len(heard.Receipts)+len(heard.Inbound) == 0:
		return name, w.confirm(r.Context(), name, listener, callback), heard
	}
	return name, w.book(r.Context(), name, &heard), heard
}

// confirmer is a listener whose provider asks once whether its calls are wanted, before it makes
// any.
type confirmer interface {
	// Confirm answers a callback that is such a question, believing no more than ReadCallback does;
	// any other it leaves alone and returns false.
	Confirm(ctx context.Context, c *provider.Callback) (confirmed bool, err error)
}

// confirm answers a genuine callback that says nothing, if it is a question.
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
			"be told that its calls are wanted: %w", channel, err))
		return unconfirmed
	case done:
		return confirmed
	}
	return empty
}

// book writes down what was heard, unless that was done before.
func (w *Webhooks) book(
	ctx context.Context, channel string, heard *provider.CallbackContent,
) verdict {
	switch w.replays.begin(channel, heard.ReplayID, time.Now()) {
	case seenBooked:
		return replayed
	case seenUnderWay:
		return busy
	case seenNever:
	}
	// A caller that hangs up does not undo what is being written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookTimeout)
	defer cancel()
	done := false
	defer func() { w.replays.end(channel, heard.ReplayID, done, time.Now()) }()
	if err := w.cfg.Booker.Book(ctx, channel, heard); err != nil {
		w.cfg.Trouble("callbacks", fmt.Errorf("callbacks cannot be booked, their providers are "+
			"asked to call again: %w", err))
		return unbooked
	}
	done = true
	return booked
}

// callbackOf is the request as plain data. Its URL is the one that the provider called: what the
// request says of host and scheme may be a proxy's.
func callbackOf(r *http.Request, base string, body []byte, at time.Time) *provider.Callback {
	return &provider.Callback{
		Method: r.Method, URL: base + r.RequestURI, Header: r.Header, Body: body,
		Certificate: r.TLS != nil && len(r.TLS.VerifiedChains) > 0, At: at,
	}
}

// Bodies above smallBody are read maxLarge at a time, so that strangers cannot fill the memory.
const (
	smallBody = 32 << 10
	maxLarge  = 64
)

var (
	errTooLarge = fmt.Errorf("the body is longer than %d bytes", provider.MaxCallback)
	errBusy     = errors.New("too many long callbacks at once")
)

// read returns the body; release has to be called when it is needed no longer.
func (w *Webhooks) read(
	out http.ResponseWriter, r *http.Request,
) (body []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > provider.MaxCallback {
		out.Header().Set("Connection", "close") // the rest of it is not read
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

// verdictOf sorts the reasons for which a callback is not believed.
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

// retryAfter is when a provider may call again, in seconds; those that ignore it have pauses
// of their own.
const retryAfter = "2"

// answer repeats nothing of what the caller said.
func answer(out http.ResponseWriter, v verdict, heard provider.CallbackContent) {
	status := statuses[v]
	switch {
	case status == http.StatusOK && heard.Answer == "":
		out.WriteHeader(status)
		return
	case status == http.StatusOK:
		out.Header().Set("Content-Type", heard.AnswerType)
		out.WriteHeader(status)
		// the caller has gone: what it said is booked all the same
		_, _ = io.WriteString(out, heard.Answer)
		return
	case status == tryAgain:
		out.Header().Set("Retry-After", retryAfter)
	case status == http.StatusMethodNotAllowed:
		out.Header().Set("Allow", "GET, POST")
	}
	http.Error(out, http.StatusText(status), status)
}
