package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"dispatcher/ledger"
)

// keepTimeout bounds the storing of an answer. It does not end with the request.
const keepTimeout = 5 * time.Second

// keyHeader names a request, so that it is not carried out again when it comes again.
const keyHeader = "Idempotency-Key"

// repeat is the middleware that answers a change that has the Idempotency-Key of an earlier one
// with the answer to the earlier one. It runs after guard, because keys belong to a principal, and
// because what guard refuses must cost no write; and after receive, which reads the body. It passes
// on operations that do not describe the header: reads, and messages of senders, which are
// idempotent by their ids.
func (a *API) repeat(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	key := r.Header.Get(keyHeader)
	if key == "" || len(key) > longestKey || !repeatable(ctx.Operation()) {
		next(ctx)
		return
	}
	if !utf8.ValidString(key) {
		a.deny(ctx, http.StatusUnprocessableEntity, "the Idempotency-Key is not UTF-8: "+
			"take letters and digits")
		return
	}
	body, _ := ctx.Context().Value(bodyKey{}).([]byte)
	effect := &effect{}
	r = r.WithContext(context.WithValue(ctx.Context(), effectKey{}, effect))
	request := &ledger.Request{
		Principal: caller(ctx.Context()).Name, Key: key, Digest: digest(r, body),
		Attempt: rand.Text(),
	}
	a.carryOut(w, r, request, effect, func(answer http.ResponseWriter) {
		next(humago.NewContext(ctx.Operation(), r, answer))
	})
}

// longestKey is the longest Idempotency-Key, in bytes. Huma refuses longer ones.
const longestKey = 128

// repeatable reports whether an operation describes the header.
func repeatable(o *huma.Operation) bool {
	return slices.ContainsFunc(o.Parameters, func(p *huma.Param) bool {
		return p.In == "header" && p.Name == keyHeader
	})
}

// digest is a hash of a request: two requests with the same key must have the same.
func digest(r *http.Request, body []byte) []byte {
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.RequestURI(), r.Header.Get("If-Match")} {
		_, _ = io.WriteString(h, part+"\x00")
	}
	_, _ = h.Write(body)
	return h.Sum(nil)
}

// carryOut carries a request out, or gives the stored answer if it was carried out before.
func (a *API) carryOut(
	w http.ResponseWriter, r *http.Request, request *ledger.Request, effect *effect,
	do func(http.ResponseWriter),
) {
	known, err := a.cfg.Ledger.Requests.Begin(r.Context(), request)
	switch {
	case errors.Is(err, ledger.ErrOtherRequest):
		writeProblem(w, http.StatusUnprocessableEntity, "you sent another request with this "+
			"Idempotency-Key")
		return
	case errors.Is(err, ledger.ErrUnderway):
		writeProblem(w, http.StatusConflict, "a request with this Idempotency-Key is under way, or "+
			"may have changed something: look at the state before you send it with another key")
		return
	case err != nil:
		a.cfg.Log.Error().Err(err).Msg("a request of the API failed")
		a.forget(r.Context(), request) // its row may be there, although no answer came
		writeProblem(w, http.StatusServiceUnavailable, "the database does not answer; try again")
		return
	case known != nil:
		give(w, known)
		return
	}
	answer := &recorder{header: http.Header{}}
	do(answer)
	a.keep(r.Context(), request, effect, answer)
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.status())
	_, _ = w.Write(answer.body.Bytes())
}

// keep stores an answer. After a conflict, or a failure that changed nothing, it deletes the
// request instead, so that the client can send it again. If a failed request may have changed
// something, its row stays as it is, and a repetition is refused.
func (a *API) keep(
	ctx context.Context, request *ledger.Request, effect *effect, answer *recorder,
) {
	status := answer.status()
	switch {
	case status == http.StatusConflict, status >= http.StatusInternalServerError && effect.none:
		a.forget(ctx, request)
		return
	case status >= http.StatusInternalServerError:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if err := a.cfg.Ledger.Requests.Finish(ctx, request, &ledger.StoredAnswer{
		Status: status, Header: answer.header.Get("ETag"), Body: answer.body.Bytes(),
	}); err != nil {
		a.cfg.Log.Error().Err(err).Msg("an answer of the API cannot be kept for its repetition")
	}
}

// forget deletes a request that changed nothing. If the database is away, the row may stay, and the
// client needs another key.
func (a *API) forget(ctx context.Context, request *ledger.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if err := a.cfg.Ledger.Requests.Forget(ctx, request); err != nil {
		a.cfg.Log.Error().Err(err).Msg("the Idempotency-Key of a failed request " +
			"could not be freed: its client needs another key for a day")
	}
}

// give writes a stored answer.
func give(w http.ResponseWriter, a *ledger.StoredAnswer) {
	kind := "application/json"
	if a.Status >= http.StatusBadRequest {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	if a.Header != "" {
		w.Header().Set("ETag", a.Header)
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

// recorder is a ResponseWriter that keeps the answer in memory.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}
