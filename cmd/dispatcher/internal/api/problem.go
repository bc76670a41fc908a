package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// writeProblem answers with a problem of RFC 9457, outside of huma.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{
		Status: status, Title: http.StatusText(status), Detail: detail,
	})
}

// problem turns an error into an answer. An unexpected error is logged and its text not sent,
// because it may hold what the caller must not see.
func (a *API) problem(ctx context.Context, err error) error {
	if _, busy := errors.AsType[*control.Busy](err); busy {
		return huma.ErrorWithHeaders(huma.Error429TooManyRequests(err.Error()),
			http.Header{retryAfter: {"5"}})
	}
	if status, ok := statusOf(err); ok {
		return huma.NewError(status, err.Error())
	}
	if _, ok := errors.AsType[huma.StatusError](err); ok {
		return err
	}
	if open, ok := errors.AsType[*control.Unpublished](err); ok {
		a.cfg.Log.Error().Err(err).Msg("a record may not have been published")
		return huma.NewError(http.StatusServiceUnavailable, open.Record+" may not have been "+
			"published: Kafka has not confirmed it; "+open.Fix)
	}
	if unstorable(err) {
		return huma.NewError(http.StatusUnprocessableEntity, "a text of the request has a "+
			"character that cannot be stored, such as U+0000: leave it out")
	}
	if ctx.Err() != nil {
		return huma.NewError(http.StatusServiceUnavailable, "the request was ended before its "+
			"answer: see whether it was carried out, then send it again")
	}
	a.cfg.Log.Error().Err(err).Msg("a request of the API failed")
	if away(err) {
		return huma.NewError(http.StatusServiceUnavailable, "the database does not answer: "+
			"try again in a few seconds; /readyz says what is wrong")
	}
	return huma.NewError(http.StatusInternalServerError, "the request failed: the log of this "+
		"instance says why; see whether it was carried out before you send it again")
}

// statusOf is the status of an error that the request or the present state causes; false for
// others.
func statusOf(err error) (int, bool) {
	_, refused := errors.AsType[*control.Refused](err)
	_, unknown := errors.AsType[*control.Unknown](err)
	_, noRamp := errors.AsType[*control.NoRamp](err)
	_, conflict := errors.AsType[*control.Conflict](err)
	_, impossible := errors.AsType[*control.Impossible](err)
	_, running := errors.AsType[*control.RampRunning](err)
	_, moved := errors.AsType[*control.RampMoved](err)
	switch {
	case refused:
		return http.StatusUnprocessableEntity, true
	case conflict:
		return http.StatusPreconditionFailed, true
	case unknown, noRamp, errors.Is(err, ledger.ErrNoMessage):
		return http.StatusNotFound, true
	case impossible, running, moved, errors.Is(err, control.ErrNoRouting):
		return http.StatusConflict, true
	}
	return 0, false
}

// unstorable reports whether the database refused a text because of its characters: U+0000, which
// JSON and URLs can hold and PostgreSQL cannot, or bytes that are not UTF-8.
func unstorable(err error) bool {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (fault.Code == "22021" || fault.Code == "22P05")
}

// away reports whether the database did not answer.
func away(err error) bool {
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// refusal is the answer to a request without a valid token.
func refusal(err error) (status int, detail string) {
	switch {
	case errors.Is(err, access.ErrNoRole):
		return http.StatusForbidden, "your token gives no role here: ask for one " +
			"of DISPATCHER_OIDC_ROLE_MAP or of the file of tokens"
	case errors.Is(err, access.ErrUnavailable):
		return http.StatusServiceUnavailable, "tokens cannot be checked now: try again in " +
			"a few seconds; if it stays so, the log says what is wrong with the issuer or the file of tokens"
	}
	return http.StatusUnauthorized, "send a valid token: Authorization: Bearer TOKEN"
}

// denyFor ends a request in a middleware: the caller may send it again after some time.
func (a *API) denyFor(ctx huma.Context, wait time.Duration, detail string) {
	ctx.SetHeader(retryAfter, strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	a.deny(ctx, http.StatusTooManyRequests, detail)
}

const retryAfter = "Retry-After"

// deny ends a request in a middleware.
func (a *API) deny(ctx huma.Context, status int, detail string) {
	_ = huma.WriteErr(a.huma, ctx, status, detail)
}
