package api

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

type optOutsInput struct {
	Tenant string `query:"tenant" maxLength:"64" doc:"only those of this tenant"`
}

func (a *API) optOuts(
	ctx context.Context, in *optOutsInput,
) (*reply[*control.OptOutCounts], error) {
	var tenant *string
	if in.Tenant != "" {
		tenant = &in.Tenant
	}
	counts, err := control.CountOptOuts(ctx, a.cfg.Ledger, tenant)
	return &reply[*control.OptOutCounts]{counts}, err
}

// findOptOutsInput has the number in the body, because proxies log URLs.
type findOptOutsInput struct {
	Body struct {
		Tenant string `json:"tenant" maxLength:"64" doc:"empty for messages without a tenant"`
		Number string `json:"number" minLength:"3" maxLength:"32" writeOnly:"true" doc:"with plus and country code"`
	}
}

func (a *API) findOptOuts(
	ctx context.Context, in *findOptOutsInput,
) (*reply[*control.OptOutHistory], error) {
	number, ok := numbers.Typed(a.cfg.Region, in.Body.Number)
	if !ok {
		return nil, noNumber("body.number")
	}
	found, err := control.OptOutsOf(ctx, a.cfg.Ledger, in.Body.Tenant, number)
	if err != nil {
		return nil, err
	}
	if !caller(ctx).Role.May(access.Operate) {
		for i := range found.History { // reasons may have numbers
			found.History[i].Reason, found.History[i].EndedReason = "", ""
		}
	}
	return &reply[*control.OptOutHistory]{found}, nil
}

// noNumber refuses a field without repeating its value.
func noNumber(location string) error {
	return huma.Error422UnprocessableEntity("this is not a phone number: write it with plus "+
		"and country code", &huma.ErrorDetail{Location: location, Message: "is not a number"})
}

type changeOptOutsInput struct {
	NoMatch
	Body struct {
		Tenant  string   `json:"tenant" maxLength:"64" doc:"whose list; empty for messages without a tenant"`
		Numbers []string `json:"numbers" minItems:"1" maxItems:"5000" nullable:"false" writeOnly:"true" doc:"with plus and country code"`
		Reason  string   `json:"reason" minLength:"1" maxLength:"1000" doc:"why; do not write numbers into it"`
	}
}

func (a *API) addOptOuts(
	ctx context.Context, in *changeOptOutsInput,
) (*reply[*control.OptOutsChanged], error) {
	return a.changeOptOuts(ctx, in, false)
}

func (a *API) removeOptOuts(
	ctx context.Context, in *changeOptOutsInput,
) (*reply[*control.OptOutsChanged], error) {
	return a.changeOptOuts(ctx, in, true)
}

func (a *API) changeOptOuts(
	ctx context.Context, in *changeOptOutsInput, remove bool,
) (*reply[*control.OptOutsChanged], error) {
	who, err := by(ctx, &Change{Reason: in.Body.Reason}, nil)
	if err != nil {
		return nil, err
	}
	change := control.OptOutChange{
		Tenant: in.Body.Tenant, Source: ledger.ByAPI, Remove: remove,
		Numbers: make([]string, len(in.Body.Numbers)),
	}
	for i, typed := range in.Body.Numbers {
		number, ok := numbers.Typed(a.cfg.Region, typed)
		if !ok {
			return nil, noNumber(fmt.Sprintf("body.numbers[%d]", i))
		}
		change.Numbers[i] = number
	}
	done, err := control.ChangeOptOuts(ctx, a.cfg.Ledger, &change, who)
	return &reply[*control.OptOutsChanged]{done}, oneWrite(err)
}
