package api

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
)

type dailyInput struct {
	Day string `query:"day" format:"date" doc:"such as 2026-11-21; today if absent"`
}

func (a *API) daily(ctx context.Context, in *dailyInput) (*reply[report.Daily], error) {
	_, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	figures, err := lookup.Daily(ctx, a.cfg.Ledger, doc, "day", in.Day, time.Now())
	if err != nil {
		return nil, err
	}
	return &reply[report.Daily]{report.NewDaily(figures)}, nil
}

type rangeInput struct {
	Unit string   `query:"unit" enum:"day,week,month" default:"day"`
	From string   `query:"from" format:"date" doc:"first day; the first of the unit of to if absent"`
	To   string   `query:"to" format:"date" doc:"last day; today if absent"`
	By   []string `query:"by" maxItems:"8" doc:"what rows tell apart: hour, route, channel, tenant, country, sender, currency, reason"`
}

// mostDays bounds a range, because every day of it is summed.
const mostDays = 366

func (a *API) rangeReport(ctx context.Context, in *rangeInput) (*reply[report.Range], error) {
	_, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	dimensions, err := report.ParseDimensions(in.By)
	if err != nil {
		return nil, &control.Refused{Err: err}
	}
	unit := report.Unit(in.Unit)
	days, err := lookup.Days(ctx, a.cfg.Ledger, doc, unit, &lookup.Between{
		From: in.From, To: in.To, FromName: "from", ToName: "to", Most: mostDays,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	figures, err := lookup.Range(ctx, a.cfg.Ledger, &report.RangeFigures{
		Unit: unit, By: dimensions, Days: days, Current: doc,
	}, false, nil)
	if err != nil {
		return nil, err
	}
	return &reply[report.Range]{report.NewRange(figures)}, nil
}

type contractsInput struct {
	Day string `query:"day" format:"date" doc:"a day of the month, such as 2026-11-21; today if absent"`
}

type contractList struct {
	Contracts []report.Contract `json:"contracts" nullable:"false"`
}

func (a *API) contracts(ctx context.Context, in *contractsInput) (*reply[contractList], error) {
	_, doc, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	found, err := lookup.Contracts(ctx, a.cfg.Ledger, doc, "day", in.Day, time.Now())
	return &reply[contractList]{contractList{found}}, err
}
