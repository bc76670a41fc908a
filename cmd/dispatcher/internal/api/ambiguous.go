package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

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
	Asked       int       `json:"asked" doc:"how often the dispatcher has tried to find out"`
	Login       string    `json:"login" doc:"login of the database that settled it; empty where it was not recorded"`
	Via         string    `json:"via" doc:"how that came in, as in the audit log; empty where it was not recorded"`
}

// contradiction is a control.Contradiction; the schema in docs/openapi.json has this name.
type contradiction control.Contradiction

type ambiguousInput struct {
	All     bool      `query:"all" doc:"also those that stayed unknown for good"`
	Channel string    `query:"channel" maxLength:"64"`
	Lane    string    `query:"lane" maxLength:"64"`
	Tenant  string    `query:"tenant" maxLength:"64"`
	Code    string    `query:"code" maxLength:"64" doc:"why there was no answer, such as timeout"`
	Since   time.Time `query:"since" doc:"only those that became ambiguous then or later"`
	Before  time.Time `query:"before" doc:"only those that became ambiguous before"`
	Limit   int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor  string    `query:"cursor" maxLength:"128" pattern:"^[A-Za-z0-9_-]*$" doc:"next of the page before; without it the first page"`
}

func (in *ambiguousInput) filter() *ledger.AmbiguousFilter {
	return &ledger.AmbiguousFilter{
		Ended: in.All, Channel: in.Channel, Lane: in.Lane, Tenant: in.Tenant, Code: in.Code,
		Since: in.Since, Before: in.Before,
	}
}

type ambiguousList struct {
	Items          []ambiguousMessage `json:"items" nullable:"false"`
	Total          int64              `json:"total" doc:"of all pages"`
	Next           string             `json:"next,omitempty" doc:"cursor of the next page; absent on the last one"`
	Contradictions []contradiction    `json:"contradictions" nullable:"false" doc:"only on the first page: the oldest so many of the last seven days, or with all of all time, that the provider denied and a receipt calls delivered"`
}

func (a *API) ambiguous(ctx context.Context, in *ambiguousInput) (*reply[ambiguousList], error) {
	last, err := control.AmbiguousAt(in.Cursor)
	if err != nil {
		return nil, unknownCursor(inQuery)
	}
	filter := in.filter()
	records, err := a.cfg.Ledger.Ambiguities.After(ctx, filter, last, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := ambiguousList{Items: []ambiguousMessage{}, Contradictions: []contradiction{}}
	if len(records) > in.Limit {
		records = records[:in.Limit]
		out.Next = control.AmbiguousCursor(&records[in.Limit-1])
	}
	for i := range records {
		r := &records[i]
		out.Items = append(out.Items, ambiguousMessage{
			r.ID, r.Lane, r.Tenant, r.Channel, r.Attempt, r.Segments, r.PriceMicros, r.Currency,
			r.Code, string(r.Step), r.OpenedAt, r.Until, string(r.ResolvedAs), r.Author, r.Asked, r.Login,
			string(r.Via),
		})
	}
	if out.Total, err = a.cfg.Ledger.Ambiguities.Count(ctx, filter); err != nil || in.Cursor != "" {
		return &reply[ambiguousList]{out}, err
	}
	denied, err := control.Contradictions(ctx, a.cfg.Ledger, filter, in.Limit)
	for i := range denied {
		out.Contradictions = append(out.Contradictions, contradiction(denied[i]))
	}
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
		return nil, huma.Error422UnprocessableEntity("reference goes with " +
			"\"as\": \"taken\": leave it out")
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

type settleManyInput struct {
	NoMatch
	Body struct {
		Change
		As      string    `json:"as" enum:"taken,not_taken,final"`
		Channel string    `json:"channel,omitempty" maxLength:"64"`
		Lane    string    `json:"lane,omitempty" maxLength:"64"`
		Tenant  string    `json:"tenant,omitempty" maxLength:"64"`
		Code    string    `json:"code,omitempty" maxLength:"64" doc:"why there was no answer, such as timeout"`
		Since   time.Time `json:"since,omitzero" doc:"only those that became ambiguous then or later"`
		Before  time.Time `json:"before,omitzero" doc:"only those that became ambiguous before; the time of the request if left out"`
		All     bool      `json:"all,omitempty" doc:"also those that stayed unknown for good"`
		Limit   int       `json:"limit,omitempty" minimum:"1" maximum:"500" default:"100" doc:"the oldest so many"`
		Cursor  string    `json:"cursor,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9_-]*$" doc:"next of the answer before, to go on behind those that could not be settled"`
	}
}

// filter is the filter in the body; false when nothing restricts it.
func (in *settleManyInput) filter() (f ledger.AmbiguousFilter, ok bool) {
	b := &in.Body
	f = ledger.AmbiguousFilter{
		Channel: b.Channel, Lane: b.Lane, Tenant: b.Tenant, Code: b.Code, Since: b.Since,
		Before: b.Before,
	}
	ok = f != ledger.AmbiguousFilter{}
	f.Ended = b.All
	return f, ok
}

type settledMany struct {
	As      string `json:"as"`
	DryRun  bool   `json:"dry_run"`
	Matched int64  `json:"matched" doc:"by the filter, before this request; not only on this page"`
	Settled int64  `json:"settled"`
	ChangedPage
}

var errNoFilter = errors.New("give at least one of channel, lane, tenant, code, since and before")

// settleMany settles a page of the submissions that a filter finds, one by one. For failures see
// changed: what was settled before one stays settled.
func (a *API) settleMany(
	ctx context.Context, in *settleManyInput,
) (*reply[settledMany], error) {
	who, err := by(ctx, &in.Body.Change, nil)
	if err != nil {
		return nil, err
	}
	filter, ok := in.filter()
	if !ok {
		return nil, &control.Refused{Err: errNoFilter}
	}
	last, err := control.AmbiguousAt(in.Body.Cursor)
	if err != nil {
		return nil, unknownCursor(inBody)
	}
	if filter.Before.IsZero() {
		if filter.Before, err = a.cfg.Ledger.Clock(ctx); err != nil {
			return nil, nothingDone(err)
		}
	}
	out := settledMany{As: in.Body.As, DryRun: who.DryRun, ChangedPage: noneLeft()}
	out.Matched, err = control.CountAmbiguous(ctx, a.cfg.Ledger, &filter)
	if err != nil || who.DryRun {
		return &reply[settledMany]{out}, nothingDone(err)
	}
	done, err := control.SettlePage(ctx, a.cfg.Ledger, &filter, last, in.Body.Limit,
		&control.Settlement{As: in.Body.As, By: who}, func() {})
	out.Settled = done.Done
	out.ChangedPage, err = changed(a, &done, err, func(last ledger.AmbiguityRecord) string {
		return control.AmbiguousCursor(&last)
	})
	return &reply[settledMany]{out}, err
}
