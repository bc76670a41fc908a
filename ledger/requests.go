package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Requests stores for a day the answers to changing requests of the API, so that a request which is
// repeated, on any instance, is not executed again.
type Requests struct{ *db }

// StoredAnswer is the response to a request.
type StoredAnswer struct {
	Status int
	Header string
	Body   []byte
}

// Errors of Begin.
var (
	// ErrOtherRequest: the key belongs to another request of the same principal.
	ErrOtherRequest = errors.New("the key belongs to another request")
	// ErrUnderway: the request is being executed, or was interrupted, and how far it came is not
	// known.
	ErrUnderway = errors.New("the request is under way")
)

// Request is one execution of a changing request.
type Request struct {
	Principal, Key string
	Digest         []byte // two requests with the same key must have the same
	// Attempt is random. Until the request is finished its row holds it in place of the header of the
	// answer, so that Forget deletes no row that another execution has made.
	Attempt string
}

// Begin stores a request of a principal under its key. For a new request the answer is nil, and the
// caller must call Finish or Forget. It may return ErrOtherRequest or ErrUnderway. After any other
// error the row may be there, and the caller must call Forget.
func (s *Requests) Begin(ctx context.Context, r *Request) (*StoredAnswer, error) {
	tag, err := s.reports.Exec(ctx, `
		with old as (
		  delete from dispatcher.api_requests where at < now() - interval '24 hours'
		    and (principal, key) <> ($1, $2)
		)
		insert into dispatcher.api_requests (principal, key, digest, header) values ($1, $2, $3, $4)
		on conflict do nothing`, r.Principal, r.Key, r.Digest, r.Attempt)
	if err != nil {
		return nil, wrap("take a request", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil //nolint:nilnil // It is new.
	}
	var a StoredAnswer
	var known []byte
	var status *int
	err = s.reports.QueryRow(ctx, `
		select digest, status, coalesce(header, ''), body from dispatcher.api_requests
		where principal = $1 and key = $2`, r.Principal, r.Key).
		Scan(&known, &status, &a.Header, &a.Body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrUnderway // Forget deleted it between the two statements
	case err != nil:
		return nil, wrap("read a request", err)
	case !bytes.Equal(known, r.Digest):
		return nil, ErrOtherRequest
	case status == nil:
		return nil, ErrUnderway
	}
	a.Status = *status
	return &a, nil
}

// Finish stores the answer to a request.
func (s *Requests) Finish(ctx context.Context, r *Request, a *StoredAnswer) error {
	_, err := s.reports.Exec(ctx, `
		update dispatcher.api_requests set status = $3, header = $4, body = $5
		where principal = $1 and key = $2`, r.Principal, r.Key, a.Status, a.Header, a.Body)
	return wrap(fmt.Sprintf("keep an answer with status %d", a.Status), err)
}

// Forget deletes a request that changed nothing, so that it can be repeated.
func (s *Requests) Forget(ctx context.Context, r *Request) error {
	_, err := s.reports.Exec(ctx, `
		delete from dispatcher.api_requests
		where principal = $1 and key = $2 and status is null and header = $3`,
		r.Principal, r.Key, r.Attempt)
	return wrap("drop a request", err)
}
