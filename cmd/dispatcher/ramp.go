package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// rampFlags are the arguments of weights ramp.
type rampFlags struct {
	changeFlags
	over                    overFlag
	steps                   int
	maxErrors, maxDeviation string
	least                   int64
	hold, resume, cancel    bool
}

func (c *cli) weightsRampCommand() *cobra.Command {
	f := &rampFlags{over: overFlag(30 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "ramp ROUTE CHANNEL=WEIGHT... | ramp ROUTE --hold|--resume|--cancel",
		Short: "Move the weights of a route in equal steps over time",
		Long: `Starts a ramp: the weights move from what they are to those named, in --steps equal
steps, the first one after the first part of --over and the last one at its end. The running
dispatchers make the steps, each as a version of its own. A ramp holds by itself, and says why,
when since the last step a channel has more errors than --max-errors or its share of the accepted
messages is further off than --max-deviation; --resume lets it go on. Whoever sets other weights
for the route ends it.`,
		Example: `  dispatcher weights ramp default a=40 c=45 --over 30m --steps 6 --max-errors 5% \
      --reason "a has more capacity"
  dispatcher weights ramp default --hold --reason "wait for the provider's maintenance"`,
		Args: arguments(1, anyNumber),
		RunE: work(func(ctx context.Context, args []string) error {
			switch chosen := f.steering(); {
			case chosen > 1:
				return usage(errors.New("--hold, --resume and --cancel exclude each other: name " +
					"one"))
			case chosen == 1:
				return c.steerRamp(ctx, f, args)
			}
			return c.startRamp(ctx, f, args[0], args[1:])
		}),
	}
	f.addTo(cmd, c)
	flags := cmd.Flags()
	flags.Var(&f.over, "over", "time from now to the last step, such as 90m, 12h or 2d")
	flags.IntVar(&f.steps, "steps", 6, "number of steps, all of the same size")
	flags.StringVar(&f.maxErrors, "max-errors", "5%",
		"hold the ramp when a larger part of a channel's attempts is refused or unanswered; 0% "+
			"switches the check off")
	flags.StringVar(&f.maxDeviation, "max-deviation", "5%",
		"hold the ramp when a channel's share differs by more from its weight; 0% switches the "+
			"check off")
	flags.Int64Var(&f.least, "least", 100,
		"make neither check before this many messages since the last step")
	flags.BoolVar(&f.hold, "hold", false, "hold the ramp of the route at its present step")
	flags.BoolVar(&f.resume, "resume", false, "resume the held ramp of the route")
	flags.BoolVar(&f.cancel, "cancel", false, "end the ramp of the route; the weights stay where "+
		"they are")
	return cmd
}

// steering counts the flags that change a running ramp.
func (f *rampFlags) steering() int {
	chosen := 0
	for _, set := range []bool{f.hold, f.resume, f.cancel} {
		if set {
			chosen++
		}
	}
	return chosen
}

// every is the time between two steps.
func (f *rampFlags) every() time.Duration { return time.Duration(f.over) / time.Duration(f.steps) }

// startRamp stores a ramp, which the dispatchers carry out.
func (c *cli) startRamp(ctx context.Context, f *rampFlags, route string, args []string) error {
	to, err := parseWeights(args)
	if err != nil {
		return usage(err)
	}
	if err := f.checkRamp(to); err != nil {
		return usage(err)
	}
	plan := control.RampPlan{
		Route: route, To: to, Every: f.every(), Steps: f.steps, Least: f.least,
	}
	if plan.MaxErrors, err = parsePercent("--max-errors", f.maxErrors); err != nil {
		return usage(err)
	}
	if plan.MaxDeviation, err = parsePercent("--max-deviation", f.maxDeviation); err != nil {
		return usage(err)
	}
	return c.withRouting(ctx, &f.changeFlags, func(ch *change) error {
		started, err := ch.StartRamp(ctx, &plan)
		if err != nil {
			return err
		}
		sentence := started.Ramp.Sentence() + " The running dispatchers make the steps."
		switch {
		case started.Unchanged:
			sentence = fmt.Sprintf("Route %s has these weights already: there is nothing to move.",
				route)
		case started.DryRun:
			sentence = "Dry run: nothing was written, no ramp was started."
		}
		return ch.printRamp(started, sentence)
	})
}

// checkRamp refuses a ramp that is wrong for any route.
func (f *rampFlags) checkRamp(to []config.Weight) error {
	switch {
	case len(to) == 0:
		return errors.New("name the weights to go to, such as a=25 b=15, or one of --hold, " +
			"--resume and --cancel")
	case f.steps < 1 || f.steps > control.MostSteps:
		return fmt.Errorf("--steps is %d; choose a number from 1 to %d", f.steps, control.MostSteps)
	case f.every() < control.LeastBetween:
		return fmt.Errorf("--over %s leaves less than a second for each of %d steps; take more "+
			"time or fewer steps", &f.over, f.steps)
	case f.least < 0:
		return errors.New("--least is negative")
	}
	return nil
}

// parsePercent reads 5% or 0.05. A bare 5 is refused, because it could mean either.
func parsePercent(flag, text string) (float64, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%s %q is not part of a whole: write for example 5%%", flag, text)
	}
	return f, nil
}

// steerRamp holds, resumes or cancels the ramp of a route.
func (c *cli) steerRamp(ctx context.Context, f *rampFlags, args []string) error {
	if len(args) > 1 {
		return usage(errors.New("--hold, --resume and --cancel take no weights: name the route " +
			"alone"))
	}
	return c.withRouting(ctx, &f.changeFlags, func(ch *change) error {
		to, done := f.wanted()
		steered, err := ch.SteerRamp(ctx, args[0], to)
		if err != nil {
			return err
		}
		r := &steered.Ramp
		sentence := r.Sentence()
		switch {
		case steered.Unchanged:
			sentence = fmt.Sprintf("Ramp %d of route %s is %s already: nothing to do.", r.ID,
				r.Route, to)
		case f.dryRun:
			sentence = fmt.Sprintf("Dry run: nothing was written. Ramp %d of route %s, now %s, "+
				"would be %s.", r.ID, r.Route, r.State, done)
		}
		return ch.printRamp(steered, sentence)
	})
}

// wanted is the state that the flags ask for, and the word for the change.
func (f *rampFlags) wanted() (to ledger.RampState, done string) {
	switch {
	case f.hold:
		return ledger.RampHeld, "held"
	case f.resume:
		return ledger.RampRunning, "resumed"
	}
	return ledger.RampCancelled, "cancelled"
}

// movingChannels are those whose weight the ramp changes, by name.
func movingChannels(r *control.Ramp) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.To)), func(channel string) bool {
		return r.From[channel] == r.To[channel]
	})
}
