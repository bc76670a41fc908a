package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"dispatcher/provider"
)

// Lookup asks an API for the list of messages under a submission's key.
type Lookup struct {
	Request *Request
	// Read takes the list out of a good answer: what it says of the key, whose Known is Unanswered where the key is not in it,
	// and how many entries it has. An error means that there is no list.
	Read func(body []byte) (found provider.LookupResult, entries int, err error)
	// AbsenceIsCertain takes an empty list for "not taken". Otherwise the message may still show up.
	AbsenceIsCertain bool
}

// LookUp asks what became of the submission with a key. An adapter's Find is one call of it.
func (c *Channel) LookUp(ctx context.Context, key string, l Lookup) provider.LookupResult {
	if key == "" {
		return provider.LookupResult{Err: errors.New("the submission had no key")}
	}
	answer, err := c.Ask(ctx, l.Request)
	if err != nil {
		return provider.LookupResult{Err: err}
	}
	return l.Result(answer)
}

// Result says what an answer means. Only a list that holds the key, or none at all, is an answer to the question.
func (l Lookup) Result(answer *Answer) provider.LookupResult {
	if answer.Status != http.StatusOK {
		return provider.LookupResult{Err: fmt.Errorf("the API answers the lookup with status %d", answer.Status)}
	}
	found, entries, err := l.Read(answer.Body)
	switch {
	case err != nil:
		return provider.LookupResult{Err: errors.New("the answer to the lookup cannot be read")}
	case found.State != provider.Unanswered:
		return found
	case entries > 0:
		return provider.LookupResult{Err: errors.New("the answer to the lookup is about other messages")}
	case l.AbsenceIsCertain:
		return provider.LookupResult{State: provider.NotTaken}
	}
	return provider.LookupResult{Err: errors.New("nothing is known under the key; it may still show up")}
}

// ErrNoList is what Lookup.Read returns for an answer without a list.
var ErrNoList = errors.New("the answer holds no list")
