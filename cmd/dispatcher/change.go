package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/config"
	"dispatcher/ledger"
)

// changeFlags are those that every command has which changes the routing.
type changeFlags struct {
	reason, author string
	expect         versionFlag // not given: whatever is current
	dryRun         bool
	force          bool // apply also what means nothing new
	as             format
}

// addTo defines the flags. The author is who is logged in, unless named.
func (f *changeFlags) addTo(cmd *cobra.Command, c *cli) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; the history shows it (required)")
	c.authorFlag(cmd.Flags(), &f.author)
	cmd.Flags().Var(&f.expect, "expect-version",
		"change nothing unless the document of this version is still in force; 0 means that there "+
			"is none yet")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change, and change nothing")
	f.as.addTo(cmd.Flags())
}

// check refuses a change without a reason. A dry run changes nothing, so it needs none.
func (f *changeFlags) check() error {
	switch {
	case strings.TrimSpace(f.reason) == "" && !f.dryRun:
		return misused(errors.New(`--reason is missing: write why, for example --reason "b is ` +
			`cheaper from today on"`))
	case strings.TrimSpace(f.author) == "":
		return misused(errors.New("--author is empty: name who makes the change"))
	}
	return nil
}

// edit makes the new document.
type edit func() (*config.Document, error)

// change is one change of the routing under way.
type change struct {
	cli    *cli
	flags  *changeFlags
	ledger *database

	current ledger.RoutingVersion // the zero version when there is none
	// document is that of current, without its effects: a change is one of the document. nil when
	// there is none.
	document *config.Document
	inForce  *config.Routing // its routing with the effects
}

// withRouting opens the ledger, reads the routing in force and calls use.
func (c *cli) withRouting(ctx context.Context, f *changeFlags, use func(*change) error) error {
	if err := f.check(); err != nil {
		return err
	}
	return c.withLedger(ctx, func(l *database) error {
		ch := &change{cli: c, flags: f, ledger: l}
		if err := ch.read(ctx); err != nil {
			return err
		}
		return use(ch)
	})
}

// read takes the routing in force as the base of the change.
func (ch *change) read(ctx context.Context) (err error) {
	ch.current, err = ch.ledger.Routing.Current(ctx)
	switch {
	case errors.Is(err, ledger.ErrNoRouting):
		ch.current = ledger.RoutingVersion{}
	case err != nil:
		return err
	default:
		if err := ch.parse(); err != nil {
			return err
		}
	}
	if expect := ch.flags.expect; expect.given && (expect.version < ch.current.Base ||
		expect.version > ch.current.Version) {
		return ch.conflict(ctx, expect.version)
	}
	return nil
}

func (ch *change) parse() (err error) {
	ch.document, ch.inForce, err = storedDocument(&ch.current)
	return err
}

// need refuses a change of a routing that does not exist.
func (ch *change) need() error {
	if ch.document == nil {
		return usage(errNoRouting)
	}
	return nil
}

// make edits the document, checks it and applies it, unless it is a dry run or changes nothing.
func (ch *change) make(ctx context.Context, by edit) (*changed, error) {
	document, err := by()
	if err != nil {
		return nil, usage(err)
	}
	after := document.Routing
	if err := app.CheckChannels(document.Name, after); err != nil {
		return nil, usage(err)
	}
	done := &changed{
		Version: ch.current.Version, Previous: ch.current.Version, DryRun: ch.flags.dryRun,
		Changes: diffLines(config.Diff(ch.base(), after)), Warnings: []string{}, after: after,
		inForce: ch.withEffects(after),
	}
	done.forced = ch.flags.force
	done.relaid = len(done.Changes) == 0 && string(document.Text) != ch.current.Document
	if len(done.Changes) == 0 && (!done.relaid || !ch.flags.force) {
		return done, nil
	}
	if err := ch.warn(ctx, done); err != nil {
		return done, err
	}
	if ch.flags.dryRun {
		return done, ch.warnOfGranted(ctx, done)
	}
	done.Version, err = ch.ledger.Routing.Apply(ctx, app.NewRouting(document, ch.inForce,
		ch.flags.author, ch.flags.reason, &ch.current.Version))
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return nil, ch.overtaken(ctx, conflict)
	}
	if err != nil {
		return nil, err
	}
	done.Applied = true
	if err := ch.warnOfGranted(ctx, done); err != nil {
		done.Warnings = append(done.Warnings,
			`What running windows have granted already could not be read; see "dispatcher `+
				`limits show".`)
	}
	return done, nil
}

// withEffects is the new routing with the effects of health weighting that it takes over.
func (ch *change) withEffects(after *config.Routing) *config.Routing {
	if ch.inForce == nil {
		return after
	}
	return after.With(config.KeepEffects(ch.inForce, after))
}

// base is what the change is compared with; an empty routing before the first.
func (ch *change) base() *config.Routing {
	if ch.document == nil {
		return &config.Routing{Timezone: time.UTC}
	}
	return ch.document.Routing
}

// warn notes what the one who makes the change should know.
func (ch *change) warn(ctx context.Context, done *changed) error {
	ramps, err := ch.endedRamps(ctx, done.after)
	if err != nil {
		return err
	}
	done.Warnings = append(done.Warnings, ramps...)
	if before, now := ch.base().
		Timezone.String(), done.after.Timezone.String(); ch.document != nil && before != now {
		done.Warnings = append(done.Warnings, fmt.Sprintf(
			"The business day is cut in %s from now on, no longer in %s: limits per day begin "+
				"with what was claimed since the latest midnight there, and reports of today and "+
				"later count from midnight there.", now, before))
	}
	ch.warnOfFiles(done)
	ch.warnOfLimits(done)
	return nil
}

// endedRamps says which ramps end because the change sets the weights of their route.
func (ch *change) endedRamps(ctx context.Context, after *config.Routing) ([]string, error) {
	ramps, err := ch.ledger.Ramps.List(ctx, false)
	if err != nil {
		return nil, err
	}
	var warnings []string
	for i := range ramps {
		r := &ramps[i]
		before, _ := routeOf(ch.base(), r.Route) // nil when it is gone: the ramp has ended already
		now, _ := routeOf(after, r.Route)
		if before != nil && (now == nil || !slices.Equal(before.Weights, now.Weights)) {
			warnings = append(warnings, fmt.Sprintf("Ramp %d of route %s ends with that, at step "+
				"%d of %d.", r.ID, r.Route, r.Step, r.Steps))
		}
	}
	return warnings, nil
}

// overtaken says who was quicker than this command.
func (ch *change) overtaken(ctx context.Context, conflict *ledger.VersionConflictError) error {
	var err error
	if ch.current, err = ch.ledger.Routing.Current(ctx); err != nil {
		return failed(conflict)
	}
	return ch.conflict(ctx, conflict.Expected)
}

// conflict says who changed the document after the expected version, when and why.
func (ch *change) conflict(ctx context.Context, expected int64) error {
	if expected > ch.current.Version {
		return failed(fmt.Errorf("there is no routing version %d yet, the current one is %d: "+
			"nothing was changed", expected, ch.current.Version))
	}
	newer, err := ch.ledger.Routing.Version(ctx, ch.current.Base)
	if err != nil {
		return err
	}
	advice := fmt.Sprintf(`see "dispatcher routing diff %d %d"`, expected, newer.Version)
	if expected == 0 {
		advice = `see "dispatcher routing show"`
	}
	return failed(fmt.Errorf(`the routing was changed after version %d: %s applied version %d `+
		`at %s (%q). Nothing was changed; %s and try again with --expect-version %d`,
		expected, newer.Author, newer.Version, newer.CreatedAt.Format(instant), newer.Reason,
		advice, newer.Version))
}

// routeOf finds a route by name, or says which there are.
func routeOf(doc *config.Routing, name string) (*config.Route, error) {
	names := make([]string, len(doc.Routes))
	for i := range doc.Routes {
		if names[i] = doc.Routes[i].Name; names[i] == name {
			return &doc.Routes[i], nil
		}
	}
	return nil, fmt.Errorf("there is no route %q; choose one of %s", name, strings.Join(names,
		", "))
}
