package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"dispatcher/cmd/dispatcher/internal/access"
)

// actionKey is the key of an operation's access.Action in its metadata.
const actionKey = "action"

// callerKey is the key of a request's access.Principal in its context.
type callerKey struct{}

// caller is the principal that makes the request.
func caller(ctx context.Context) access.Principal {
	p, _ := ctx.Value(callerKey{}).(access.Principal)
	return p
}

// guard is the middleware that checks the token, the role and the rate of a request, in this order.
// It runs before the body is read, and before repeat.
func (a *API) guard(ctx huma.Context, next func(huma.Context)) {
	action, guarded := ctx.Operation().Metadata[actionKey].(access.Action)
	r, _ := humago.Unwrap(ctx)
	who, err := a.cfg.Gate.Authenticate(r)
	if err != nil {
		status, detail := refusal(err)
		switch status {
		case http.StatusUnauthorized:
			ctx.SetHeader("WWW-Authenticate", "Bearer")
		case http.StatusServiceUnavailable:
			a.cfg.Log.Error().Err(err).Msg("tokens cannot be checked")
		}
		a.deny(ctx, status, detail)
		return
	}
	if !guarded || action != anybody && !who.Role.May(action) {
		a.deny(ctx, http.StatusForbidden, "your role, "+who.Role.String()+", may not do this: "+
			"use a token with a role that may")
		return
	}
	if wait := a.cfg.Gate.Wait(&who); wait > 0 {
		a.denyFor(ctx, wait, "too many requests; wait before the next one")
		return
	}
	ctx = huma.WithValue(ctx, callerKey{}, who)
	next(huma.WithValue(ctx, validKey{}, func() bool {
		who, err := a.cfg.Gate.Authenticate(r)
		return err == nil && (action == anybody || who.Role.May(action))
	}))
}

// validKey is the key of a function in a request's context, see stillValid.
type validKey struct{}

// stillValid reports whether the token of a request is still valid, and its role may still do this.
func stillValid(ctx context.Context) bool {
	valid, ok := ctx.Value(validKey{}).(func() bool)
	return ok && valid()
}

// anybody is the action of operations that every role may call.
const anybody = access.Action(-1)
