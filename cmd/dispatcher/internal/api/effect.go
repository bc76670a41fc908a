package api

import (
	"context"
	"errors"

	"dispatcher/ledger"
)

// A request that failed with 5xx may be repeated under its Idempotency-Key if it certainly changed
// nothing. A failed request counts as one that may have changed something, unless its error is
// marked by nothingDone or oneWrite.

// effect says whether a request has changed something.
type effect struct{ none bool } // it has certainly changed nothing

// effectKey is the key of a request's effect in its context.
type effectKey struct{}

// untouched marks the error of a request that changed nothing.
type untouched struct{ error }

func (u untouched) Unwrap() error { return u.error }

// nothingDone marks an error that came before the request wrote anything.
func nothingDone(err error) error {
	if err == nil {
		return nil
	}
	return untouched{err}
}

// oneWrite marks the error of a request that writes in one transaction, if the error shows that the
// transaction was rolled back.
func oneWrite(err error) error {
	if err != nil && ledger.RolledBack(err) {
		return untouched{err}
	}
	return err
}

// noteEffect tells repeat that a request which failed changed nothing. It returns the error without
// the mark.
func noteEffect(ctx context.Context, err error) error {
	mark, ok := errors.AsType[untouched](err)
	if !ok {
		return err
	}
	if e, ok := ctx.Value(effectKey{}).(*effect); ok {
		e.none = true
	}
	return mark.error
}
