package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

type messageInput struct {
	ID string `path:"id" maxLength:"256" doc:"the producer's id"`
}

func (a *API) message(ctx context.Context, in *messageInput) (*reply[*report.Explanation], error) {
	e, err := lookup.Explain(ctx, a.cfg.Ledger, a.cfg.Keys, in.ID,
		caller(ctx).Role.May(access.Operate))
	return &reply[*report.Explanation]{e}, err
}

// lookupInput has the number in the body, because proxies log URLs.
type lookupInput struct {
	Body struct {
		Number string `json:"number" minLength:"3" maxLength:"32" writeOnly:"true" doc:"with plus and country code"`
		Days   int    `json:"days,omitempty" minimum:"1" maximum:"31" default:"7" doc:"how far back"`
		Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"500" default:"50"`
		Cursor string `json:"cursor,omitempty" maxLength:"64" pattern:"^[A-Za-z0-9_-]*$"`
	}
}

func (a *API) lookup(
	ctx context.Context, in *lookupInput,
) (*reply[list[ledger.FoundMessage]], error) {
	before, err := lastRow(inBody, in.Body.Cursor)
	if err != nil {
		return nil, err
	}
	number, ok := numbers.Typed(a.cfg.Region, in.Body.Number)
	if !ok {
		return nil, huma.Error422UnprocessableEntity("number is not a phone number: write it " +
			"with plus and country code")
	}
	rows, err := lookup.ByNumber(ctx, a.cfg.Ledger, &lookup.NumberQuery{
		Keys: a.cfg.Keys, Number: number, Days: in.Body.Days, Before: before,
		Limit: in.Body.Limit + 1,
	})
	return &reply[list[ledger.FoundMessage]]{paged(rows, in.Body.Limit,
		func(m *ledger.FoundMessage) int64 { return m.Seq })}, err
}

// NoMatch has the headers of a change that does not touch the routing.
type NoMatch struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"128" doc:"of your choice, for a day: a request that comes again with it gets the first answer"`
}

type cancelInput struct {
	NoMatch
	ID   string `path:"id" maxLength:"256"`
	Body struct {
		Reason  string `json:"reason" minLength:"1" maxLength:"1000" doc:"why; do not write numbers into it"`
		Pending bool   `json:"pending,omitempty" doc:"also a message that is not in the ledger yet: it is cancelled if it comes within DISPATCHER_ID_RETENTION"`
	}
}

type cancelled struct {
	ID      string `json:"id"`
	Was     string `json:"was" doc:"its state before; empty while it is pending"`
	Pending bool   `json:"pending" doc:"it is not in the ledger yet, and is cancelled if it comes"`
}

func (a *API) cancel(ctx context.Context, in *cancelInput) (*reply[cancelled], error) {
	who, err := by(ctx, &Change{Reason: in.Body.Reason}, nil)
	if err != nil {
		return nil, err
	}
	was, err := control.Cancel(ctx, a.cfg.Ledger, in.ID, in.Body.Pending, who)
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		err = &control.Unknown{
			Err: fmt.Errorf("%w; with \"pending\": true it is cancelled when it comes", unknown.Err),
		}
	}
	return &reply[cancelled]{cancelled{in.ID, string(was), was == ""}}, oneWrite(err)
}
