package api

import (
	"context"
	"net/http"
	"time"

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
	before, err := (&Page{Cursor: in.Body.Cursor}).before()
	if err != nil {
		return nil, err
	}
	number, ok := numbers.Typed(a.cfg.Region, in.Body.Number)
	if !ok {
		return nil, huma.Error422UnprocessableEntity("number is none: write it with plus and " +
			"country code")
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
		Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"why; do not write numbers into it"`
	}
}

type cancelled struct {
	ID  string `json:"id"`
	Was string `json:"was" doc:"its state before"`
}

func (a *API) cancel(ctx context.Context, in *cancelInput) (*reply[cancelled], error) {
	who, err := by(ctx, &Change{Reason: in.Body.Reason}, nil)
	if err != nil {
		return nil, err
	}
	was, err := control.Cancel(ctx, a.cfg.Ledger, in.ID, who)
	return &reply[cancelled]{cancelled{in.ID, string(was)}}, oneWrite(err)
}

// ambiguousMessage is a submission that nobody answered. Notes of operators are left out: people
// write numbers into them.
type ambiguousMessage struct {
	ID          string    `json:"id"`
	Lane        string    `json:"lane"`
	Tenant      string    `json:"tenant"`
	Channel     string    `json:"channel"`
	Attempt     int       `json:"attempt"`
	Segments    int       `json:"segments"`
	PriceMicros int64     `json:"price_micros"`
	Currency    string    `json:"currency"`
	Code        string    `json:"code" doc:"why there was no answer"`
	Step        string    `json:"step" doc:"how the dispatcher tries to find out"`
	OpenedAt    time.Time `json:"opened_at"`
	Until       time.Time `json:"until"`
	Verdict     string    `json:"verdict" doc:"empty while it is open"`
	Author      string    `json:"author"`
}

type ambiguousInput struct {
	All     bool      `query:"all" doc:"also those that stayed unknown for good"`
	Channel string    `query:"channel" maxLength:"64"`
	Lane    string    `query:"lane" maxLength:"64"`
	Before  time.Time `query:"before" doc:"only those that became ambiguous before"`
	Limit   int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type ambiguousList struct {
	Items []ambiguousMessage `json:"items" nullable:"false"`
	Total int64              `json:"total"`
}

func (a *API) ambiguous(ctx context.Context, in *ambiguousInput) (*reply[ambiguousList], error) {
	filter := ledger.AmbiguousFilter{
		Ended: in.All, Channel: in.Channel, Lane: in.Lane, Before: in.Before,
	}
	records, err := a.cfg.Ledger.Ambiguities.List(ctx, &filter, in.Limit)
	if err != nil {
		return nil, err
	}
	out := ambiguousList{Items: []ambiguousMessage{}}
	for i := range records {
		r := &records[i]
		out.Items = append(out.Items, ambiguousMessage{
			r.ID, r.Lane, r.Tenant, r.Channel, r.Attempt, r.Segments, r.PriceMicros, r.Currency,
			r.Code, string(r.Step), r.OpenedAt, r.Until, string(r.ResolvedAs), r.Author,
		})
	}
	out.Total, err = a.cfg.Ledger.Ambiguities.Count(ctx, &filter)
	return &reply[ambiguousList]{out}, err
}

type settleInput struct {
	NoMatch
	ID   string `path:"id" maxLength:"256"`
	Body struct {
		As        string `json:"as" enum:"taken,not_taken,final"`
		Reference string `json:"reference,omitempty" maxLength:"256" doc:"the provider's id; only with taken"`
		Reason    string `json:"reason" minLength:"1" maxLength:"1000" doc:"how you know it"`
	}
}

type settled struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	Channel string `json:"channel"`
	As      string `json:"as"`
	State   string `json:"state" doc:"of the message now"`
}

func (a *API) settle(ctx context.Context, in *settleInput) (*reply[settled], error) {
	who, err := by(ctx, &Change{Reason: in.Body.Reason}, nil)
	if err != nil {
		return nil, err
	}
	if in.Body.Reference != "" && in.Body.As != "taken" {
		return nil, huma.Error422UnprocessableEntity("reference goes with taken")
	}
	attempt, why, err := control.Settle(ctx, a.cfg.Ledger, in.ID, 0, &control.Settlement{
		As: in.Body.As, Reference: in.Body.Reference, By: who,
	})
	if err != nil {
		return nil, oneWrite(err)
	}
	if why != "" {
		return nil, huma.NewError(http.StatusConflict, "the message "+why)
	}
	after, err := a.cfg.Ledger.Messages.Record(ctx, in.ID)
	return &reply[settled]{settled{
		in.ID, attempt.Number, attempt.Channel, in.Body.As, string(after.Message.State),
	}}, err
}
