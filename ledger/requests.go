package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Requests remembers for a day what was answered to changing requests of the API, so that one that
// comes again, on any instance, is not carried out again.
type Requests struct{ *db }

// Answer is what was answered to a request.
type Answer struct {
	Status int
	Header string
	Body   []byte
}

// Errors of Begin.
var (
	// ErrOtherRequest: the key belongs to another request of the same principal.
	ErrOtherRequest = errors.New("the key belongs to another request")
	// ErrUnderway: the request is being carried out, or was cut off and nobody knows how far it
	// came.
	ErrUnderway = errors.New("the request is under way")
)

// Begin takes a request of a principal under its key. The answer is nil for a new one, which has to
// be ended by Finish or Forget.
func (s *Requests) Begin(
	ctx context.Context, principal, key string, digest []byte,
) (*Answer, error) {
	tag, err := s.reports.Exec(ctx, `
		with old as (
		  delete from dispatcher.api_requests where at < now() - interval '24 hours'
		    and (principal, key) <> ($1, $2)
		)
		insert into dispatcher.api_requests (principal, key, digest) values ($1, $2, $3)
		on conflict do nothing`, principal, key, digest)
	if err != nil {
		return nil, wrap("take a request", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil //nolint:nilnil // It is new.
	}
	var a Answer
	var known []byte
	var status *int
	err = s.reports.QueryRow(ctx, `
		select digest, status, coalesce(header, ''), body from dispatcher.api_requests
		where principal = $1 and key = $2`, principal, key).Scan(&known, &status, &a.Header, &a.Body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrUnderway // it was forgotten just now
	case err != nil:
		return nil, wrap("read a request", err)
	case !bytes.Equal(known, digest):
		return nil, ErrOtherRequest
	case status == nil:
		return nil, ErrUnderway
	}
	a.Status = *status
	return &a, nil
}

// Finish keeps what was answered.
func (s *Requests) Finish(ctx context.Context, principal, key string, a *Answer) error {
	_, err := s.reports.Exec(ctx, `
		update dispatcher.api_requests set status = $3, header = $4, body = $5
		where principal = $1 and key = $2`, principal, key, a.Status, a.Header, a.Body)
	return wrap(fmt.Sprintf("keep an answer with status %d", a.Status), err)
}

// Forget drops a request that changed nothing, so that it may come again.
func (s *Requests) Forget(ctx context.Context, principal, key string) error {
	_, err := s.reports.Exec(ctx, `
		delete from dispatcher.api_requests where principal = $1 and key = $2`, principal, key)
	return wrap("drop a request", err)
}
