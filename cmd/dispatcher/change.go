package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// changeFlags are the flags of every command that changes the routing.
type changeFlags struct {
	reason, author string
	expect         versionFlag // if not given, any version
	dryRun         bool
	force          bool // apply even if nothing changes
	as             format
}

// addTo defines the flags. The default author is the logged-in user.
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

// change is one change of the routing that a command is making.
type change struct {
	*control.Draft
	cli   *cli
	flags *changeFlags
}

// by is the author of the change, and the reason.
func (f *changeFlags) by() control.By {
	by := control.By{
		Author: f.author, Via: ledger.ViaCommand, Reason: f.reason, DryRun: f.dryRun, Force: f.force,
	}
	if f.expect.given {
		by.Expect = &f.expect.version
	}
	return by
}

// withRouting opens the ledger, reads the routing in force and calls use.
func (c *cli) withRouting(ctx context.Context, f *changeFlags, use func(*change) error) error {
	if err := f.check(); err != nil {
		return err
	}
	return c.withLedger(ctx, func(l *database) error {
		draft, err := control.Begin(ctx, l.Ledger, l.settings.Secrets(), f.by())
		if err != nil {
			return inCommands(err)
		}
		return inCommands(use(&change{Draft: draft, cli: c, flags: f}))
	})
}

// write prints the result of the change.
func (ch *change) write(done *control.Changed, err error) error {
	if err != nil {
		return err
	}
	return writeChanged(ch.cli, done, ch.flags.as)
}

// need refuses a change of a routing that does not exist.
func (ch *change) need() error {
	if ch.Document == nil {
		return usage(errNoRouting)
	}
	return nil
}

// inCommands gives an error of a change its exit code, and names the command that helps.
func inCommands(err error) error {
	if conflict, ok := errors.AsType[*control.Conflict](err); ok {
		return failed(conflictWords(conflict))
	}
	if refused, ok := errors.AsType[*control.Refused](err); ok {
		return usage(refused.Err)
	}
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		return usage(unknown.Err)
	}
	if ramp, ok := errors.AsType[*control.NoRamp](err); ok {
		return failed(fmt.Errorf(`no ramp of route %s runs or is held: "dispatcher routing `+
			`history" lists the past ones`, ramp.Route))
	}
	if running, ok := errors.AsType[*control.RampRunning](err); ok {
		r := &running.Ramp
		return failed(fmt.Errorf(`%s It was started by %s (%q). End it with "dispatcher weights `+
			`ramp %s --cancel --reason TEXT", then start the new one`,
			r.Sentence(), r.Author, r.Reason, r.Route))
	}
	if moved, ok := errors.AsType[*control.RampMoved](err); ok {
		return failed(fmt.Errorf(`ramp %d of route %s was changed meanwhile: see "dispatcher `+
			`weights show %s" and try again`, moved.Ramp.ID, moved.Ramp.Route, moved.Ramp.Route))
	}
	if errors.Is(err, control.ErrNoRouting) {
		return usage(errNoRouting)
	}
	return err
}

// conflictWords say who changed the document after the expected version, when and why.
func conflictWords(c *control.Conflict) error {
	newer := &c.Newer
	if newer.Version == 0 {
		return c
	}
	advice := fmt.Sprintf(`see "dispatcher routing diff %d %d"`, c.Expected, newer.Version)
	if c.Expected == 0 {
		advice = `see "dispatcher routing show"`
	}
	return fmt.Errorf(`the routing was changed after version %d: %s applied version %d `+
		`at %s (%q). Nothing was changed; %s and try again with --expect-version %d`,
		c.Expected, newer.Author, newer.Version, newer.CreatedAt.Format(instant), newer.Reason,
		advice, newer.Version)
}
