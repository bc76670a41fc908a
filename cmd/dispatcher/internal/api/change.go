package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/selector"
)

type stateInput struct {
	Match
	Channel string `path:"channel" maxLength:"64"`
	Body    struct {
		Change
		State string `json:"state" enum:"enabled,draining,disabled"`
	}
}

func (a *API) setState(ctx context.Context, in *stateInput) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(ctx, in.Channel, config.ChannelState(in.Body.State))
	})
}

// weights are weights by channel, as numbers.
type weights map[string]json.Number

func (w weights) parse() ([]config.Weight, error) {
	var out []config.Weight
	for _, channel := range slices.Sorted(maps.Keys(w)) {
		weight, err := selector.ParseWeight(w[channel].String())
		if err != nil {
			return nil, &control.Refused{Err: fmt.Errorf("channel %s: %w", channel, err)}
		}
		out = append(out, config.Weight{Channel: channel, Weight: weight, Configured: weight})
	}
	return out, nil
}

type weightsInput struct {
	Match
	Route string `path:"route" maxLength:"64"`
	Body  struct {
		Change
		Weights weights `json:"weights" minProperties:"1" maxProperties:"200" doc:"by channel; others keep theirs"`
	}
}

func (a *API) setWeights(ctx context.Context, in *weightsInput) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	to, err := in.Body.Weights.parse()
	if err != nil {
		return nil, err
	}
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return d.SetWeights(ctx, in.Route, to)
	})
}

type rampInput struct {
	Match
	Route string `path:"route" maxLength:"64"`
	Body  struct {
		Change
		Weights      weights  `json:"weights" minProperties:"1" maxProperties:"200" doc:"that the ramp leads to"`
		OverSeconds  int64    `json:"over_seconds" minimum:"1" maximum:"31536000" doc:"from now to the last step"`
		Steps        int      `json:"steps,omitempty" minimum:"1" maximum:"1000" default:"6"`
		MaxErrors    *float64 `json:"max_errors,omitempty" minimum:"0" maximum:"1" default:"0.05" doc:"the ramp holds above it; 0 switches the check off"`
		MaxDeviation *float64 `json:"max_deviation,omitempty" minimum:"0" maximum:"1" default:"0.05" doc:"the ramp holds above it; 0 switches the check off"`
		Least        *int64   `json:"least_messages,omitempty" minimum:"0" default:"100" doc:"no check before this many messages"`
	}
}

func (a *API) startRamp(ctx context.Context, in *rampInput) (*reply[*control.RampStarted], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	to, err := in.Body.Weights.parse()
	if err != nil {
		return nil, err
	}
	plan := control.RampPlan{
		Route: in.Route, To: to, Steps: in.Body.Steps,
		Every:     time.Duration(in.Body.OverSeconds) * time.Second / time.Duration(in.Body.Steps),
		MaxErrors: *in.Body.MaxErrors, MaxDeviation: *in.Body.MaxDeviation, Least: *in.Body.Least,
	}
	draft, err := control.Begin(ctx, a.cfg.Ledger, nil, who)
	if err != nil {
		return nil, nothingDone(err)
	}
	started, err := draft.StartRamp(ctx, &plan)
	return &reply[*control.RampStarted]{started}, oneWrite(err)
}

type steerInput struct {
	Match
	Route string `path:"route" maxLength:"64"`
	Body  struct {
		Change
		Do string `json:"do" enum:"hold,resume,cancel"`
	}
}

func (a *API) steerRamp(ctx context.Context, in *steerInput) (*reply[*control.RampStarted], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	draft, err := control.Begin(ctx, a.cfg.Ledger, nil, who)
	if err != nil {
		return nil, nothingDone(err)
	}
	steered, err := draft.SteerRamp(ctx, in.Route, control.SteeredTo[in.Body.Do])
	return &reply[*control.RampStarted]{steered}, err
}

// LimitName has the fields of a body that name a limit.
type LimitName struct {
	Channel string `json:"channel,omitempty" maxLength:"64" doc:"absent for the limits over all channels"`
	Window  string `json:"window" enum:"1s,1m,1h,1d,prepaid"`
	Unit    string `json:"unit,omitempty" enum:"messages,segments,money" default:"messages"`
	Tenant  string `json:"tenant,omitempty" maxLength:"64" doc:"only the limit of this tenant"`
	Prefix  string `json:"prefix,omitempty" maxLength:"16" doc:"only the limit for numbers that begin with this"`
}

func (n *LimitName) key() (k admission.Key, err error) {
	if k.Window, err = config.ParseWindow(n.Window); err != nil {
		return k, err
	}
	if k.Unit, err = admission.ParseUnit(n.Unit); err != nil {
		return k, err
	}
	k.Scope = admission.Scope{Tenant: n.Tenant, Prefix: n.Prefix}
	switch {
	case n.Tenant != "" && n.Prefix != "":
		return k, fmt.Errorf("tenant and prefix exclude each other: leave one of them out")
	case n.Channel == "" && k.Scope == (admission.Scope{}):
		return k, fmt.Errorf("a limit over all channels has a tenant or a prefix: name one of " +
			"them, or a channel")
	}
	if n.Prefix != "" {
		if err := config.CheckPrefix(n.Prefix); err != nil {
			return k, fmt.Errorf("prefix: %w", err)
		}
	}
	return k, nil
}

type limitInput struct {
	Match
	Body struct {
		Change
		LimitName
		Max      string `json:"max,omitempty" maxLength:"32" doc:"most units in one window; money as a decimal"`
		Currency string `json:"currency,omitempty" maxLength:"3"`
		Remove   bool   `json:"remove,omitempty"`
	}
}

// limit parses the limit in the body.
func (in *limitInput) limit() (l admission.Limit, err error) {
	b := &in.Body
	key, err := b.key()
	if err != nil {
		return l, err
	}
	l.Scope, l.Window, l.Unit, l.Currency = key.Scope, key.Window, key.Unit, b.Currency
	if b.Remove == (b.Max != "") {
		return l, fmt.Errorf("write either max or remove")
	}
	if !b.Remove {
		if l.Max, err = config.ParseMax(b.Max, l.Unit); err != nil {
			return l, fmt.Errorf("max: %w", err)
		}
	}
	return l, nil
}

func (a *API) setLimit(ctx context.Context, in *limitInput) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	l, err := in.limit()
	if err != nil {
		return nil, &control.Refused{Err: err}
	}
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return d.SetLimit(ctx, in.Body.Channel, l, in.Body.Remove, nil)
	})
}

type restartInput struct {
	Match
	Body struct {
		Change
		LimitName
	}
}

func (a *API) restartLimit(
	ctx context.Context, in *restartInput,
) (*reply[*control.RestartedLimit], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	key, err := in.Body.key()
	if err != nil {
		return nil, &control.Refused{Err: err}
	}
	draft, err := control.Begin(ctx, a.cfg.Ledger, nil, who)
	if err != nil {
		return nil, nothingDone(err)
	}
	done, err := draft.RestartLimit(ctx, in.Body.Channel, key)
	return &reply[*control.RestartedLimit]{done}, oneWrite(err)
}

type topUpInput struct {
	Match
	Body struct {
		Change
		Channel string `json:"channel,omitempty" maxLength:"64" doc:"absent for a budget over all channels"`
		Tenant  string `json:"tenant,omitempty" maxLength:"64" doc:"absent for the budget of a channel"`
		Amount  string `json:"amount" maxLength:"32" doc:"a decimal in whole units of the currency; below 0 it is a correction"`
		Key     string `json:"key,omitempty" maxLength:"128" doc:"of your choice, for ever: a top-up that comes again with it is not recorded again"`
	}
}

func (a *API) topUp(ctx context.Context, in *topUpInput) (*reply[*control.ToppedUp], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	draft, err := control.Begin(ctx, a.cfg.Ledger, nil, who)
	if err != nil {
		return nil, nothingDone(err)
	}
	done, err := draft.TopUp(ctx, &control.TopUp{
		Channel: in.Body.Channel, Tenant: in.Body.Tenant, Amount: in.Body.Amount, Key: in.Body.Key,
	})
	return &reply[*control.ToppedUp]{done}, oneWrite(err)
}

type pauseInput struct {
	Match
	Body struct {
		Change
		Lanes   []string `json:"lanes,omitempty" maxItems:"100"`
		Routes  []string `json:"routes,omitempty" maxItems:"100"`
		Tenants []string `json:"tenants,omitempty" maxItems:"100"`
		// Prefixes are prefixes of numbers, with the plus.
		Prefixes []string `json:"prefixes,omitempty" maxItems:"100"`
		All      bool     `json:"all,omitempty"`
	}
}

func (a *API) pause(ctx context.Context, in *pauseInput) (*tagged[*control.Changed], error) {
	return a.pausing(ctx, in, (*control.Draft).Pause)
}

func (a *API) resume(ctx context.Context, in *pauseInput) (*tagged[*control.Changed], error) {
	return a.pausing(ctx, in, (*control.Draft).Resume)
}

func (a *API) pausing(
	ctx context.Context, in *pauseInput,
	do func(*control.Draft, context.Context, *config.Paused) (*control.Changed, error),
) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	what := &config.Paused{
		Lanes: in.Body.Lanes, Routes: in.Body.Routes, Tenants: in.Body.Tenants, All: in.Body.All,
		Prefixes: in.Body.Prefixes,
	}
	if !what.Any() {
		return nil, &control.Refused{Err: fmt.Errorf("name lanes, routes, tenants, prefixes or all")}
	}
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return do(d, ctx, what)
	})
}
