package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TopUp asks for an amount to be added to a prepaid budget.
type TopUp struct {
	Channel string // empty for a budget over all channels
	Tenant  string // empty for the budget of a channel
	Amount  string // a decimal in whole units of the currency; a negative one takes back
	Key     string // idempotency key, chosen by the caller; empty for none
}

// ToppedUp is a recorded top-up. Scripts rely on its JSON names.
type ToppedUp struct {
	ID       int64      `json:"id"` // 0 in a dry run
	At       time.Time  `json:"at"`
	Author   string     `json:"author"`
	Login    string     `json:"login" doc:"login of the database"`
	Via      ledger.Via `json:"via" doc:"how it came in: command (the author is only claimed), api or console (the author was authenticated); empty where it was not recorded"`
	Reason   string     `json:"reason"`
	Channel  string     `json:"channel" doc:"empty for a budget over all channels"`
	Scope    string     `json:"scope"`
	Currency string     `json:"currency"`
	// Amounts are decimals in whole units of the currency.
	Amount string `json:"amount"`
	Before string `json:"topped_up_before"`
	After  string `json:"topped_up"`
	Used   string `json:"used" doc:"of the budget, when it was topped up"`
	Key    string `json:"key" doc:"of the caller's choice; empty for none"`
	// Repeated is whether it had been recorded under this key before; then nothing was added again.
	Repeated bool `json:"repeated"`
	DryRun   bool `json:"dry_run"`
}

// NewToppedUp converts a row of the ledger.
func NewToppedUp(u *ledger.ToppedUp) ToppedUp {
	return ToppedUp{
		ID: u.ID, At: u.At, Author: u.Author, Login: u.Login, Via: u.Via, Reason: u.Reason,
		Channel: u.Channel,
		Scope:   u.Scope.String(), Currency: u.Currency, Amount: report.Money(u.Micros),
		Before: report.Money(u.Before), After: report.Money(u.After()), Used: report.Money(u.Granted),
		Key: u.Key, Repeated: u.Repeated,
	}
}

// TopUp adds to a budget of the routing in force.
func (d *Draft) TopUp(ctx context.Context, asked *TopUp) (*ToppedUp, error) {
	limit, micros, err := d.budgetOf(asked)
	if err != nil {
		return nil, err
	}
	u := ledger.TopUp{
		Channel: asked.Channel, Limit: limit, Micros: micros, Key: asked.Key, Expect: d.by.Expect,
		Author: d.by.Author, Via: d.by.Via, Reason: d.by.Reason,
	}
	if d.by.DryRun {
		return d.tryTopUp(ctx, &u)
	}
	done, err := d.ledger.Limits.TopUp(ctx, u)
	if err != nil {
		return nil, d.notToppedUp(ctx, &u, err)
	}
	shown := NewToppedUp(&done)
	return &shown, nil
}

// TopUpNamed is TopUp of a budget in the words of admission.Key.On, under an idempotency key.
func (d *Draft) TopUpNamed(ctx context.Context, on, amount, key string) (*ToppedUp, error) {
	channel, limit, err := named(on)
	if err != nil {
		return nil, err
	}
	if limit.Window != admission.Prepaid {
		return nil, refusef("limit %s is not a prepaid budget: choose one", on)
	}
	return d.TopUp(ctx, &TopUp{
		Channel: channel, Tenant: limit.Scope.Tenant, Amount: amount, Key: key,
	})
}

// budgetOf finds the limit and parses the amount.
func (d *Draft) budgetOf(asked *TopUp) (l admission.Limit, micros int64, err error) {
	if err := d.needChannel(asked.Channel); err != nil {
		return l, 0, err
	}
	if asked.Tenant == admission.EachTenant {
		return l, 0, refusef("each tenant has a budget of its own: name one tenant")
	}
	key := admission.Key{
		Scope: admission.Scope{Tenant: asked.Tenant}, Window: admission.Prepaid,
		Unit: admission.Money,
	}
	l, ok := admission.Find(d.Base().LimitsOf(asked.Channel), key)
	if !ok {
		return l, 0, unknownf("the routing document has no prepaid budget %s: add {window: prepaid, "+
			"unit: money} to the limits there first", key.On(asked.Channel))
	}
	amount, negative := strings.CutPrefix(asked.Amount, "-")
	if micros, err = config.ParseMax(amount, admission.Money); err != nil {
		return l, 0, refusef("amount: %w", err)
	}
	if micros == 0 {
		return l, 0, refusef("amount: 0 changes nothing: write how much to add, or below 0 to take back")
	}
	if negative {
		micros = -micros
	}
	return l, micros, nil
}

// notToppedUp says why nothing was added.
func (d *Draft) notToppedUp(ctx context.Context, u *ledger.TopUp, err error) error {
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return d.Overtaken(ctx, conflict)
	}
	if short, ok := errors.AsType[*ledger.NotLeftError](err); ok {
		return impossiblef("the budget has %s %s left, and no more can be taken back: nothing was "+
			"changed. Take back less", report.Money(short.Left), u.Limit.Currency)
	}
	switch {
	case errors.Is(err, ledger.ErrOtherTopUp):
		return impossiblef("another top-up has the key %q: nothing was changed. Take another key, "+
			"or none", u.Key)
	case errors.Is(err, ledger.ErrTopUpTooLarge):
		return refusef("amount: the budget would come to more than a billion: add less")
	case errors.Is(err, ledger.ErrNoLimit):
		return impossiblef("the ledger has no row of the budget: apply the routing document again, " +
			"then top it up")
	}
	return err
}

// tryTopUp computes what the budget would be, and adds nothing.
func (d *Draft) tryTopUp(ctx context.Context, u *ledger.TopUp) (*ToppedUp, error) {
	present, err := d.ledger.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	tried := ledger.ToppedUp{
		At: present.Now, Author: u.Author, Via: u.Via, Reason: u.Reason, Channel: u.Channel,
		Scope: u.Limit.Scope, Currency: u.Limit.Currency, Micros: u.Micros, Key: u.Key,
	}
	now := &status.Counters{Present: &present, Zone: d.Base().Timezone}
	if c := now.Stored(u.Channel, u.Limit.Key()); c != nil {
		tried.Before, tried.Granted = c.Limit.Max, c.Granted
	}
	if tried.After() < tried.Granted {
		return nil, d.notToppedUp(ctx, u, &ledger.NotLeftError{Left: tried.Before - tried.Granted})
	}
	shown := NewToppedUp(&tried)
	shown.DryRun = true
	return &shown, nil
}
