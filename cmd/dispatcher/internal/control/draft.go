package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/config"
	"dispatcher/ledger"
)

// By says who makes a change, and why.
type By struct {
	Author, Reason string
	Via            ledger.Via
	// Expect is the version that the change is based on; nil accepts any, 0 means that there is no
	// routing yet.
	Expect *int64
	DryRun bool
	Force  bool // also apply a document in which only comments or layout differ
}

// Edit makes the new document.
type Edit func() (*config.Document, error)

// Draft is a change of the routing that is not applied yet.
type Draft struct {
	ledger  *ledger.Ledger
	secrets *config.SecretsFolder
	by      By

	Current ledger.RoutingVersion // the zero version when there is none
	// Document is the document of Current, without effects, because a change edits the document. It
	// is nil when there is none.
	Document *config.Document
	InForce  *config.Routing // its routing with the effects
}

// Begin starts a change from the routing in force. Make warns of files that channels name and that
// are missing in the folder of secrets. If secrets is nil, it does not check them.
func Begin(
	ctx context.Context, l *ledger.Ledger, secrets *config.SecretsFolder, by By,
) (*Draft, error) {
	d := &Draft{ledger: l, secrets: secrets, by: by}
	if err := CheckReason(by.Reason); err != nil {
		return nil, err
	}
	var err error
	d.Current, err = l.Routing.Current(ctx)
	switch {
	case errors.Is(err, ledger.ErrNoRouting):
		d.Current = ledger.RoutingVersion{}
	case err != nil:
		return nil, err
	default:
		if d.Document, d.InForce, err = Stored(&d.Current); err != nil {
			return nil, err
		}
	}
	if e := by.Expect; e != nil && (*e < d.Current.Base || *e > d.Current.Version) {
		return nil, d.conflict(ctx, *e)
	}
	return d, nil
}

// need returns ErrNoRouting if there is no routing.
func (d *Draft) need() error {
	if d.Document == nil {
		return ErrNoRouting
	}
	return nil
}

// needChannel refuses a channel that the document does not have. It accepts an empty name, which
// stands for the limits over all channels.
func (d *Draft) needChannel(name string) error {
	if err := d.need(); err != nil || name == "" {
		return err
	}
	_, err := ChannelOf(d.Base(), name)
	return err
}

// Make edits the document, checks it and applies it, unless it is a dry run or changes nothing.
func (d *Draft) Make(ctx context.Context, edit Edit) (*Changed, error) {
	document, err := edit()
	if err != nil {
		return nil, refuse(err)
	}
	after := document.Routing
	if err := app.CheckChannels(document.Name, after, d.Base()); err != nil {
		return nil, refuse(err)
	}
	if err := noNumbers(d.Base(), after); err != nil {
		return nil, err
	}
	done := &Changed{
		Version: d.Current.Version, Previous: d.Current.Version, DryRun: d.by.DryRun,
		Changes: Lines(config.Diff(d.Base(), after)), Warnings: []string{}, Routing: after,
		InForce: d.withEffects(after),
	}
	done.Forced = d.by.Force
	done.Relaid = len(done.Changes) == 0 && string(document.Text) != d.Current.Document
	if len(done.Changes) == 0 && (!done.Relaid || !d.by.Force) {
		return done, nil
	}
	if err := d.warn(ctx, done); err != nil {
		return done, err
	}
	if d.by.DryRun {
		return done, d.warnOfGranted(ctx, done)
	}
	n := app.NewRouting(document, d.InForce, d.by.Author, d.by.Reason, &d.Current.Version)
	n.Via = d.by.Via
	done.Version, err = d.ledger.Routing.Apply(ctx, n)
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return nil, d.Overtaken(ctx, conflict)
	}
	if err != nil {
		return nil, err
	}
	done.Applied = true
	if err := d.warnOfGranted(ctx, done); err != nil {
		done.Warnings = append(done.Warnings,
			`What running windows have granted already could not be read; see "dispatcher `+
				`limits show".`)
	}
	return done, nil
}

// Check refuses a document whose channels an adapter would refuse.
func Check(doc *config.Document) error { return app.CheckChannels(doc.Name, doc.Routing, nil) }

// withEffects is the new routing with the effects of health weighting that it keeps.
func (d *Draft) withEffects(after *config.Routing) *config.Routing {
	if d.InForce == nil {
		return after
	}
	return after.With(config.KeepEffects(d.InForce, after))
}

// Base is the routing that the change is compared with; an empty one when there is none yet.
func (d *Draft) Base() *config.Routing {
	if d.Document == nil {
		return &config.Routing{Timezone: time.UTC}
	}
	return d.Document.Routing
}

// warn adds the warnings that are known before the change is applied.
func (d *Draft) warn(ctx context.Context, done *Changed) error {
	ramps, err := d.endedRamps(ctx, done.Routing)
	if err != nil {
		return err
	}
	done.Warnings = append(done.Warnings, ramps...)
	before, now := d.Base().Timezone.String(), done.Routing.Timezone.String()
	if d.Document != nil && before != now {
		done.Warnings = append(done.Warnings, fmt.Sprintf(
			"The business day is cut in %s from now on, no longer in %s: limits per day begin "+
				"with what was claimed since the latest midnight there, and reports of today and "+
				"later count from midnight there.", now, before))
	}
	d.warnOfFiles(done)
	d.warnOfLimits(done)
	return nil
}

// endedRamps says which ramps end because the change sets the weights of their route or removes it.
func (d *Draft) endedRamps(ctx context.Context, after *config.Routing) ([]string, error) {
	ramps, err := d.ledger.Ramps.List(ctx, false)
	if err != nil {
		return nil, err
	}
	var warnings []string
	for i := range ramps {
		r := &ramps[i]
		before := d.Base().Route(r.Route) // nil when it is gone: the ramp has ended already
		now := after.Route(r.Route)
		if before != nil && (now == nil || !slices.Equal(before.Weights, now.Weights)) {
			warnings = append(warnings, fmt.Sprintf("Ramp %d of route %s ends with that, at step "+
				"%d of %d.", r.ID, r.Route, r.Step, r.Steps))
		}
	}
	return warnings, nil
}

// Overtaken is the Conflict of a change that the ledger refused. It says who applied another first.
func (d *Draft) Overtaken(ctx context.Context, conflict *ledger.VersionConflictError) error {
	var err error
	if d.Current, err = d.ledger.Routing.Current(ctx); err != nil {
		return conflict
	}
	return d.conflict(ctx, conflict.Expected)
}

// conflict says who changed the document after the expected version.
func (d *Draft) conflict(ctx context.Context, expected int64) error {
	c := &Conflict{Expected: expected, Current: d.Current.Version}
	if expected > d.Current.Version {
		return c
	}
	var err error
	c.Newer, err = d.ledger.Routing.Version(ctx, d.Current.Base)
	if err != nil {
		return err
	}
	return c
}

// RouteOf finds a route by name. The error of an unknown name is an Unknown that lists all routes.
func RouteOf(doc *config.Routing, name string) (*config.Route, error) {
	route := doc.Route(name)
	if route == nil {
		return nil, unknownf("there is no route %q; choose one of %s", name,
			strings.Join(doc.RouteNames(), ", "))
	}
	return route, nil
}
