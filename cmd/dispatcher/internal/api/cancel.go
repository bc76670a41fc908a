package api

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

type cancelManyInput struct {
	NoMatch
	Body struct {
		Change
		Lane   string    `json:"lane,omitempty" maxLength:"64"`
		Route  string    `json:"route,omitempty" maxLength:"64"`
		Tenant string    `json:"tenant,omitempty" maxLength:"64"`
		Prefix string    `json:"prefix,omitempty" maxLength:"16" doc:"of the number, such as +44"`
		Since  time.Time `json:"since,omitzero" doc:"only those that were stored then or later"`
		Before time.Time `json:"before,omitzero" doc:"only those that were stored before; the time of the first request if left out"`
		Limit  int       `json:"limit,omitempty" minimum:"1" maximum:"500" default:"500" doc:"how many to cancel at most; a page may have none although others follow"`
		Cursor string    `json:"cursor,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9_-]*$" doc:"next of the answer before, for the rest"`
	}
}

// filter is the filter in the body.
func (in *cancelManyInput) filter() *control.Unsent {
	b := &in.Body
	return &control.Unsent{
		UnsentFilter: ledger.UnsentFilter{
			Lane: b.Lane, Route: b.Route, Tenant: b.Tenant, Since: b.Since, Before: b.Before,
		},
		Prefix: b.Prefix,
	}
}

type cancelledMany struct {
	DryRun    bool  `json:"dry_run"`
	Matched   int64 `json:"matched" doc:"by the filter; counted only in a dry run"`
	Cancelled int64 `json:"cancelled"`
	ChangedPage
}

// cancelMany ends a page of the messages that a filter finds. For failures see changed.
func (a *API) cancelMany(
	ctx context.Context, in *cancelManyInput,
) (*reply[cancelledMany], error) {
	who, err := by(ctx, &in.Body.Change, nil)
	if err != nil {
		return nil, err
	}
	filter := in.filter()
	if err := filter.Check(); err != nil {
		return nil, err
	}
	var after int64
	if in.Body.Cursor != "" { // it has the bound of the first page, too
		if after, filter.Before, err = control.UnsentAt(in.Body.Cursor); err != nil {
			return nil, unknownCursor(inBody)
		}
	}
	if filter.Before.IsZero() {
		if filter.Before, err = a.cfg.Ledger.Clock(ctx); err != nil {
			return nil, nothingDone(err)
		}
	}
	out := cancelledMany{DryRun: who.DryRun, ChangedPage: noneLeft()}
	if who.DryRun {
		out.Matched, err = control.CountUnsent(ctx, a.cfg.Ledger, filter)
		return &reply[cancelledMany]{out}, nothingDone(err)
	}
	if in.Body.Cursor == "" { // a cursor continues what is on record
		if err := control.NoteCancellation(ctx, a.cfg.Ledger, filter, who); err != nil {
			return nil, oneWrite(err)
		}
	}
	done, err := control.CancelPage(ctx, a.cfg.Ledger, filter, after, in.Body.Limit, who)
	out.Cancelled = done.Done
	out.ChangedPage, err = changed(a, &done, err, func(last int64) string {
		return control.UnsentCursor(last, filter.Before)
	})
	return &reply[cancelledMany]{out}, err
}
