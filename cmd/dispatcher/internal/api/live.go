package api

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"dispatcher/cmd/dispatcher/internal/status"
)

// liveBeat is the longest time between two events.
const liveBeat = 15 * time.Second

// live streams the status: at once, then whenever it changes, and at least every liveBeat. It ends
// when its token is no longer valid.
func (a *API) live(o operation) {
	shared := &liveStatus{}
	described := o.describe()
	described.Middlewares = huma.Middlewares{a.stream}
	sse.Register(a.huma, described, map[string]any{"status": status.Now{}},
		func(ctx context.Context, _ *struct{}, send sse.Sender) {
			tick := time.NewTicker(a.cfg.LiveEvery)
			defer tick.Stop()
			var last string
			var sent time.Time
			for id := 1; stillValid(ctx); {
				now, words, err := shared.read(ctx, a)
				if err == nil && (words != last || time.Since(sent) >= liveBeat) {
					if send(sse.Message{ID: id, Data: *now}) != nil {
						return // the client has disconnected
					}
					last, sent, id = words, time.Now(), id+1
				}
				select {
				case <-tick.C:
				case <-a.closing:
					return
				case <-ctx.Done():
					return
				}
			}
		})
}

// stream is the middleware that bounds the streams of a principal.
func (a *API) stream(ctx huma.Context, next func(huma.Context)) {
	who := caller(ctx.Context())
	if !a.cfg.Gate.OpenStream(&who) {
		a.denyFor(ctx, liveBeat, "too many streams are open; end one of them")
		return
	}
	defer a.cfg.Gate.CloseStream(&who)
	next(ctx)
}

// liveStatus caches the status, so that all streams together cost one read.
type liveStatus struct {
	mu    sync.Mutex
	at    time.Time
	now   *status.Now
	words string // the status without its times
	err   error
}

func (l *liveStatus) read(ctx context.Context, a *API) (*status.Now, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < a.cfg.LiveEvery/2 {
		return l.now, l.words, l.err
	}
	l.now, l.err = a.now(ctx)
	l.at = time.Now()
	if l.err != nil {
		return nil, "", l.err
	}
	timeless := *l.now
	timeless.Now, timeless.Since = time.Time{}, time.Time{}
	text, err := json.Marshal(&timeless)
	l.words, l.err = string(text), err
	return l.now, l.words, l.err
}
