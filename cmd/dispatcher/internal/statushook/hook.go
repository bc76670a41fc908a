package statushook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config"
)

// hook delivers events to one receiver.
type hook struct {
	config.StatusWebhook
	own     map[string]bool // tenants with a webhook of their own
	client  *http.Client
	pause   time.Duration
	log     zerolog.Logger
	metrics *metrics
	giveUp  time.Duration
	told    atomic.Int64 // when it last logged something, in nanoseconds of Unix time
	took    atomic.Int64 // when the receiver last took an event; in the same unit
	full    atomic.Bool  // nothing is left to send but events that it fails at alone, see reader.left
}

// same reports whether another hook sends the same events in the same way.
func (h *hook) same(other *hook) bool {
	return reflect.DeepEqual(h.StatusWebhook, other.StatusWebhook) &&
		(h.Tenant != "" || maps.Equal(h.own, other.own))
}

// tellAfter is the least time between two log lines of one webhook. A receiver that is down would
// fill the log. The metrics count everything.
const tellAfter = 10 * time.Second

func (h *hook) tell(level zerolog.Level, err error, what string) {
	last, now := h.told.Load(), time.Now().UnixNano()
	if now-last >= int64(tellAfter) && h.told.CompareAndSwap(last, now) {
		h.log.WithLevel(level).Err(err).Str("webhook", h.Name).Msg(what)
	}
}

// mostRead bounds how much of an answer is read. It is read only so that the connection can be
// reused.
const mostRead = 16 << 10

// errRefused means that the receiver refused the event for good, errFaulty that it answered 500.
var (
	errRefused = errors.New("the receiver refused the event")
	errFaulty  = errors.New("the receiver answered 500")
)

// event is a record of the status topic.
type event struct {
	*kgo.Record
	upTo   *kgo.Record   // what is read when the event is done: it, or a later one that is not wanted
	done   bool          // delivered or dropped
	failed time.Time     // when a call failed last; zero for never
	alone  time.Time     // since when the receiver takes others between failures; else zero
	next   time.Time     // when to call again
	pause  time.Duration // after the next call that fails
	end    func()        // ends its metric; nil before the first call
}

// finish ends the event, or what this process does for it.
func (e *event) finish() {
	if e.end != nil {
		e.end()
		e.end = nil
	}
}

// try sends an event once. Afterwards it is done, or to be tried again at its next time; if ctx has
// ended, at once.
func (h *hook) try(ctx context.Context, e *event) {
	if e.end == nil {
		e.end, e.pause = h.metrics.begin(h.Name, e.Timestamp), h.pause
	}
	if e.done = h.send(ctx, e); e.done {
		e.finish()
	}
}

// send reports whether the receiver took the event, or it is to be dropped.
func (h *hook) send(ctx context.Context, e *event) (done bool) {
	if time.Since(e.Timestamp) > h.MaxAge {
		h.metrics.count(h.Name, expired)
		h.tell(zerolog.ErrorLevel, nil, "a status event is older than max_age and left out: "+
			"the receiver of the webhook does not take what it is sent")
		return true
	}
	err, now := h.call(ctx, e.Value), time.Now()
	switch {
	case err == nil:
		h.metrics.count(h.Name, delivered)
		h.took.Store(now.UnixNano())
		return true
	case ctx.Err() != nil:
		return false
	}
	h.noteFailure(e, now)
	if errors.Is(err, errRefused) ||
		errors.Is(err, errFaulty) && !e.alone.IsZero() && now.Sub(e.alone) >= h.giveUp {
		h.metrics.count(h.Name, refused)
		h.tell(zerolog.ErrorLevel, err, "a webhook refuses a status event; it is left out")
		return true
	}
	h.metrics.count(h.Name, failed)
	h.tell(zerolog.WarnLevel, err, "a status event cannot be sent to a webhook; trying again")
	// With jitter, so that the calls of many messages are not repeated at the same moment.
	e.next = now.Add(e.pause/2 + rand.N(e.pause))
	e.pause = min(2*e.pause, longestPause)
	return false
}

// noteFailure notes since when the receiver has failed at this event only: it has taken others
// between two failures of this one. A receiver that is down takes none in between. While there are
// no others to take, what was known before stays.
func (h *hook) noteFailure(e *event, now time.Time) {
	switch others := !e.failed.IsZero() && h.took.Load() > e.failed.UnixNano(); {
	case others && e.alone.IsZero():
		e.alone = now
	case !others && !h.full.Load():
		e.alone = time.Time{}
	}
	e.failed = now
}

// wants reports whether this webhook sends an event. A record that is not an event is never sent.
func (h *hook) wants(event []byte) bool {
	var e struct {
		State  string `json:"state"`
		Tenant string `json:"tenant"`
	}
	if json.Unmarshal(event, &e) != nil {
		return false
	}
	if len(h.States) > 0 && !slices.Contains(h.States, e.State) {
		return false
	}
	return e.Tenant == h.Tenant || h.Tenant == "" && !h.own[e.Tenant]
}

// call makes one request. A status 2xx takes the event. The error is errRefused for a status that
// says that the request itself is wrong. With any other status the call is repeated, because the
// receiver may have a wrong address, certificate or secret for a while.
func (h *hook) call(ctx context.Context, event []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(event))
	if err != nil {
		return err
	}
	h.sign(request.Header, event, time.Now())
	began := time.Now()
	response, err := h.client.Do(request)
	h.metrics.took(h.Name, time.Since(began))
	if err != nil {
		return cause(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	_, _ = io.CopyN(io.Discard, response.Body, mostRead)
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusBadRequest, status == http.StatusGone,
		status == http.StatusRequestEntityTooLarge, status == http.StatusUnsupportedMediaType,
		status == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %d", errRefused, status)
	case status == http.StatusInternalServerError:
		return errFaulty
	default:
		return fmt.Errorf("the receiver answered %d", status)
	}
}

// cause is the error of a call without the URL, which may hold a secret.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// sign sets the headers of Standard Webhooks. webhook-id is the same each time the event is sent;
// webhook-signature has an HMAC-SHA256 of id, timestamp and body for each secret.
func (h *hook) sign(header http.Header, event []byte, now time.Time) {
	sum := sha256.Sum256(event)
	id, at := "evt_"+hex.EncodeToString(sum[:16]), strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(h.Secrets))
	for i, secret := range h.Secrets {
		mac := hmac.New(sha256.New, secret)
		_, _ = io.WriteString(mac, id+"."+at+".")
		_, _ = mac.Write(event)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "sms-dispatcher")
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", at)
	header.Set("webhook-signature", strings.Join(signatures, " "))
}
