package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"dispatcher/ledger"
)

// keepTimeout bounds the storing of an answer. It does not end with the request.
const keepTimeout = 5 * time.Second

// repeat runs before every operation. It answers a change that has the Idempotency-Key of an
// earlier one with the answer to the earlier one. Keys belong to a principal, so it authenticates;
// guard checks the role later. It passes on requests that no operation takes, which are refused,
// and messages of senders, which are idempotent by their ids.
func (a *API) repeat(next *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		_, pattern := next.Handler(r)
		if key == "" || len(key) > 128 || r.Method == http.MethodGet || pattern == Base+"/" ||
			pattern == intakePattern {
			next.ServeHTTP(w, r)
			return
		}
		who, err := a.cfg.Gate.Authenticate(r)
		if err != nil {
			next.ServeHTTP(w, r) // guard refuses it
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDocument))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			writeProblem(w, http.StatusRequestEntityTooLarge, "the body is too large")
			return
		}
		if err != nil {
			writeProblem(w, http.StatusBadRequest, "the body did not arrive whole")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.carryOut(w, r, next, who.Name, key, digest(r, body))
	})
}

// intakePattern is the route of messages of senders.
const intakePattern = http.MethodPost + " " + Base + "/messages"

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
	w http.ResponseWriter, r *http.Request, next http.Handler, who, key string, digest []byte,
) {
	known, err := a.cfg.Ledger.Requests.Begin(r.Context(), who, key, digest)
	switch {
	case errors.Is(err, ledger.ErrOtherRequest):
		writeProblem(w, http.StatusUnprocessableEntity, "you sent another request with this "+
			"Idempotency-Key")
		return
	case errors.Is(err, ledger.ErrUnderway):
		writeProblem(w, http.StatusConflict, "a request with this Idempotency-Key is under way, or "+
			"was cut off: look at the state before you send it with another key")
		return
	case err != nil:
		a.cfg.Log.Error().Err(err).Msg("a request of the API failed")
		writeProblem(w, http.StatusServiceUnavailable, "the database does not answer; try again")
		return
	case known != nil:
		give(w, known)
		return
	}
	answer := &recorder{header: http.Header{}}
	next.ServeHTTP(answer, r)
	a.keep(r.Context(), who, key, answer)
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.status())
	_, _ = w.Write(answer.body.Bytes())
}

// keep stores an answer. It stores none when the request changed nothing for a reason that may
// pass, so that the client can send it again.
func (a *API) keep(ctx context.Context, who, key string, answer *recorder) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	var err error
	switch status := answer.status(); {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusConflict, status == http.StatusTooManyRequests:
		err = a.cfg.Ledger.Requests.Forget(ctx, who, key)
	case status >= http.StatusInternalServerError:
		return // the request may have changed something, or not
	default:
		err = a.cfg.Ledger.Requests.Finish(ctx, who, key, &ledger.Answer{
			Status: status, Header: answer.header.Get("ETag"), Body: answer.body.Bytes(),
		})
	}
	if err != nil {
		a.cfg.Log.Error().Err(err).Msg("an answer of the API cannot be kept for its repetition")
	}
}

// give writes a stored answer.
func give(w http.ResponseWriter, a *ledger.Answer) {
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
