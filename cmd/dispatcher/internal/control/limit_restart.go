package control

import (
	"context"
	"errors"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// RestartedLimit is the result of a restart of a limit. Scripts rely on its JSON names.
type RestartedLimit struct {
	Restarted bool            `json:"restarted"` // false in a dry run
	DryRun    bool            `json:"dry_run"`
	Version   int64           `json:"version"`
	Channel   string          `json:"channel" doc:"empty for a limit over all channels"`
	Scope     string          `json:"scope"`
	Window    string          `json:"window"`
	Unit      string          `json:"unit"`
	Was       RestartedWindow `json:"was"`
	Now       RestartedWindow `json:"now"`

	Limit *admission.Limit `json:"-"` // as in the document
}

// RestartedWindow is the window of the limit before or after the restart.
type RestartedWindow struct {
	Start time.Time `json:"window_start"`
	// Granted is null in Now of a dry run: it is not known what the new window would start with.
	Granted *status.Quantity `json:"granted"`
}

// RestartLimit starts the current window of a limit whose stored window begins in the future,
// because the database's clock was ahead. channel is empty for a limit over all channels.
func (d *Draft) RestartLimit(
	ctx context.Context, channel string, key admission.Key,
) (*RestartedLimit, error) {
	limit, err := d.limit(channel, key)
	if err != nil {
		return nil, err
	}
	out := &RestartedLimit{
		DryRun: d.by.DryRun, Version: d.Current.Version, Channel: channel,
		Scope: limit.Scope.String(), Window: limit.Window.String(), Unit: limit.Unit.String(),
		Limit: limit,
	}
	if d.by.DryRun {
		return out, d.tryRestart(ctx, limit, out)
	}
	return out, d.restart(ctx, limit, out)
}

// RestartNamed is RestartLimit for a limit in the words of admission.Key.On, such as
// "alpha 1s messages".
func (d *Draft) RestartNamed(ctx context.Context, on string) (*RestartedLimit, error) {
	channel, key, err := named(on)
	if err != nil {
		return nil, err
	}
	return d.RestartLimit(ctx, channel, key)
}

func (d *Draft) restart(ctx context.Context, limit *admission.Limit, out *RestartedLimit) error {
	done, err := d.ledger.Limits.RestartWindow(ctx, ledger.Restart{
		Channel: out.Channel, Limit: *limit, Zone: d.Base().Timezone, Expect: &d.Current.Version,
		Author: d.by.Author, Via: d.by.Via, Reason: d.by.Reason,
	})
	if ahead, ok := errors.AsType[*ledger.NotAheadError](err); ok {
		return d.nothingToRestart(limit, out.Channel, ahead.Start)
	}
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return d.Overtaken(ctx, conflict)
	}
	if errors.Is(err, ledger.ErrNoLimit) {
		return withoutRow(limit, out.Channel)
	}
	if err != nil {
		return err
	}
	was, now := status.QuantityOf(limit, done.Was.Granted), status.QuantityOf(limit, done.Now.Granted)
	out.Restarted, out.Version = true, done.Version
	out.Was, out.Now = RestartedWindow{done.Was.Start, &was}, RestartedWindow{done.Now.Start, &now}
	return nil
}

// tryRestart is restart for a dry run.
func (d *Draft) tryRestart(ctx context.Context, limit *admission.Limit, out *RestartedLimit) error {
	present, err := d.ledger.Limits.Present(ctx)
	if err != nil {
		return err
	}
	now := &status.Counters{Present: &present, Zone: d.Base().Timezone}
	if now.Stored(out.Channel, limit.Key()) == nil {
		return withoutRow(limit, out.Channel)
	}
	c := now.Counter(out.Channel, limit)
	if !c.Ahead(now.Now) {
		return d.nothingToRestart(limit, out.Channel, c.Start)
	}
	was := status.QuantityOf(limit, c.Granted)
	out.Was = RestartedWindow{c.Start.UTC(), &was}
	out.Now.Start = limit.Window.Restart(now.Now, d.Base().Timezone).UTC()
	return nil
}

// withoutRow says how a limit of the document gets a row in the ledger again after somebody has
// deleted it. The new row has the latest window in the limit's history that is not over; after a
// clock that was ahead, that window begins in the future.
func withoutRow(limit *admission.Limit, channel string) error {
	return impossiblef(`limit %s is in the document, but the ledger has no row of it: `+
		`somebody deleted that. Nothing was changed; give it another max with "dispatcher `+
		`limits set" and take that back: each new version of the document writes the rows that `+
		`are missing; run this again if "dispatcher limits show" then says that its window `+
		`begins in the future`,
		limit.Key().On(channel))
}

// nothingToRestart refuses a window that is, or is nearly, the current one.
func (d *Draft) nothingToRestart(limit *admission.Limit, channel string, start time.Time) error {
	began := "nothing was granted in it yet"
	if start.After(time.Unix(0, 0)) {
		began = "its window is that of " + status.WindowWords(start, d.Base().Timezone) + " (" +
			d.Base().Timezone.String() + ")"
	}
	return impossiblef("limit %s does not begin in the future: %s. Nothing was changed; "+
		"started again, it would give its slots away twice",
		limit.Key().On(channel), began)
}
