package api

import (
	"context"
	"errors"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// maxDocument bounds a body with a routing document as JSON, in bytes. It is more than the largest
// valid document needs.
const maxDocument = 4 << 20

type identity struct {
	Name string `json:"name"`
	Role string `json:"role" doc:"viewer, operator, finance, sender or admin; several are joined by +"`
}

func (a *API) whoami(ctx context.Context, _ *struct{}) (*reply[identity], error) {
	who := caller(ctx)
	return &reply[identity]{identity{who.Name, who.Role.String()}}, nil
}

func (a *API) status(ctx context.Context, _ *struct{}) (*reply[*status.Now], error) {
	now, err := a.now(ctx)
	return &reply[*status.Now]{now}, err
}

func (a *API) now(ctx context.Context) (*status.Now, error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	return lookup.Status(ctx, a.cfg.Ledger, a.cfg.DeadAfter, v.Version, doc)
}

func (a *API) instances(ctx context.Context, _ *struct{}) (*tagged[*status.Instances], error) {
	v, _, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	found, err := status.ReadInstances(ctx, a.cfg.Ledger, a.cfg.DeadAfter, v.Version)
	return &tagged[*status.Instances]{etag(v.Version), found}, err
}

// channelList is a status.ChannelList; the schema in docs/openapi.json has this name.
type channelList status.ChannelList

func (a *API) channels(ctx context.Context, _ *struct{}) (*tagged[*channelList], error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	found, err := lookup.Channels(ctx, a.cfg.Ledger, a.cfg.DeadAfter, v.Version, doc)
	return &tagged[*channelList]{etag(v.Version), (*channelList)(found)}, err
}

func (a *API) limits(ctx context.Context, _ *struct{}) (*tagged[*status.Limits], error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	limits, err := status.ReadLimits(ctx, a.cfg.Ledger, v.Version, doc, nil)
	return &tagged[*status.Limits]{etag(v.Version), limits}, err
}

func (a *API) budgets(ctx context.Context, _ *struct{}) (*tagged[*status.Budgets], error) {
	v, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	budgets, err := status.ReadBudgets(ctx, a.cfg.Ledger, v.Version, doc)
	return &tagged[*status.Budgets]{etag(v.Version), budgets}, err
}

type topUpsInput struct {
	Page
	Tenant string `query:"tenant" maxLength:"64" doc:"only those of budgets of this tenant"`
}

func (a *API) topUps(
	ctx context.Context, in *topUpsInput,
) (*reply[list[control.ToppedUp]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	found, err := a.cfg.Ledger.Limits.TopUps(ctx,
		&ledger.TopUpFilter{Below: before, Tenant: in.Tenant}, in.Limit+1)
	rows := make([]control.ToppedUp, len(found))
	for i := range found {
		rows[i] = control.NewToppedUp(&found[i])
		if !caller(ctx).Role.May(access.Operate) {
			rows[i].Reason = "" // it may have numbers
		}
	}
	return &reply[list[control.ToppedUp]]{paged(rows, in.Limit, func(u *control.ToppedUp) int64 {
		return u.ID
	})}, err
}

// weightList is a control.WeightList; the schema in docs/openapi.json has this name.
type weightList control.WeightList

func (a *API) weights(ctx context.Context, _ *struct{}) (*tagged[weightList], error) {
	found, err := control.Weights(ctx, a.cfg.Ledger, "")
	return &tagged[weightList]{etag(found.Version), weightList(found)}, err
}

func (a *API) ramps(ctx context.Context, in *Page) (*reply[list[control.Ramp]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	all, err := a.cfg.Ledger.Ramps.List(ctx, true)
	if err != nil {
		return nil, err
	}
	var ramps []control.Ramp
	for i := range all {
		if (before == 0 || all[i].ID < before) && len(ramps) <= in.Limit {
			ramps = append(ramps, control.NewRamp(&all[i]))
		}
	}
	return &reply[list[control.Ramp]]{paged(ramps, in.Limit, func(r *control.Ramp) int64 {
		return r.ID
	})}, nil
}

type actionsInput struct {
	Kind   string `query:"kind" enum:"routing,ramp,window,budget,guard,message,opt_out,erasure" doc:"only those of this kind"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor string `query:"cursor" maxLength:"128" pattern:"^[A-Za-z0-9_-]*$" doc:"next of the page before; without it the first page"`
}

func (a *API) actions(
	ctx context.Context, in *actionsInput,
) (*reply[list[control.Action]], error) {
	page, next, err := control.Actions(ctx, a.cfg.Ledger, &control.ActionsPage{
		Kind: in.Kind, Cursor: in.Cursor, Limit: in.Limit, Operator: caller(ctx).Role.May(access.Operate),
	})
	if errors.Is(err, control.ErrCursor) {
		err = unknownCursor(inQuery)
	}
	return &reply[list[control.Action]]{list[control.Action]{page, next}}, err
}
