package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Derive the choices of a day again and report what differs",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(c.auditVerifyCommand())
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	as := format(formatTable)
	var day string
	var sample int
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Derive each stored choice of a day again: draw, interval, ranking, price",
		Long: `Takes each message that was received on the day and makes its choices again: the route and the
segments from its envelope, the draw from its id and the draw key, the interval from the
routing version, the ranking from the state that was stored with it, the price from the version.
What differs from the record is listed, and the exit code is 1. Nothing is changed.

The draw keys are those of DISPATCHER_DRAW_KEY_FILE: keep the old ones in it, below the current one.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if sample < 0 {
				return usage(errors.New("--sample must be above 0: how many messages of the day to look at"))
			}
			return c.verify(ctx, day, sample, as)
		}),
	}
	cmd.Flags().StringVar(&day, "day", "", "day such as 2026-11-21, in the routing document's time zone (default today)")
	cmd.Flags().IntVar(&sample, "sample", 0, "look at so many messages of the day, evenly spread; the same ones each time (default all)")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

// verification is what audit verify found.
type verification struct {
	Day        string              `json:"day"`
	Timezone   string              `json:"timezone"`
	Checked    int                 `json:"checked"`
	Attempts   int                 `json:"attempts"`
	Mismatches []dispatch.Mismatch `json:"mismatches"`
}

// verify derives the day again. It needs the keys that the day was drawn with.
func (c *cli) verify(ctx context.Context, day string, sample int, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	keys, err := drawKeys(s)
	if err != nil {
		return err
	}
	current, err := currentRouting(ctx, l, s)
	if err != nil {
		return err
	}
	when := time.Now()
	if day != "" {
		if when, err = parseDay(day, current.Timezone); err != nil {
			return usage(err)
		}
	}
	found := verification{
		Day: when.In(current.Timezone).Format(time.DateOnly), Timezone: current.Timezone.String(), Mismatches: []dispatch.Mismatch{},
	}
	verifier := dispatch.NewVerifier(keys, (&versions{ctx: ctx, ledger: l}).compiled)
	filter := ledger.ChoiceFilter{From: admission.Day.Start(when, current.Timezone), To: admission.Day.End(when, current.Timezone), Sample: sample}
	err = l.EachChoice(ctx, filter, func(r *ledger.Record) error {
		found.Checked++
		found.Attempts += len(r.Attempts)
		mismatches, err := verifier.Verify(r)
		found.Mismatches = append(found.Mismatches, mismatches...)
		return err
	})
	if err != nil {
		return err
	}
	return c.printVerification(&found, as)
}

// drawKeys are all keys of the key file; a check of old draws is nothing without them.
func drawKeys(s *config.Settings) ([]selector.Key, error) {
	if s.DrawKeyFile == "" {
		return nil, usage(errors.New("DISPATCHER_DRAW_KEY_FILE is missing; set it to the file with the keys that the messages were drawn with"))
	}
	keys, err := config.DrawKeys(s.DrawKeyFile)
	if err != nil {
		return nil, usage(err)
	}
	return keys, nil
}

// versions compiles the routing versions that a day was chosen under.
type versions struct {
	ctx    context.Context //nolint:containedctx // Lives for one command, as the callback that it serves.
	ledger *ledger.Ledger
}

func (v *versions) compiled(version int64) (*dispatch.Routing, error) {
	stored, err := v.ledger.Routing(v.ctx, version)
	if err != nil {
		return nil, fmt.Errorf("routing version %d: %w", version, err)
	}
	doc, err := storedRouting(&stored)
	if err != nil {
		return nil, err
	}
	return app.Compile(doc, version)
}

// printVerification lists what differs; the exit code says whether anything did.
func (c *cli) printVerification(v *verification, as format) error {
	s := sheet{
		title:  fmt.Sprintf("%s, %s: %d messages and %d attempts derived again, %d differences", v.Day, v.Timezone, v.Checked, v.Attempts, len(v.Mismatches)),
		header: []string{"message", "attempt", "what", "stored", "derived"}, right: []int{2},
	}
	for _, m := range v.Mismatches {
		s.rows = append(s.rows, []string{m.ID, strconv.Itoa(m.Attempt), m.What, m.Stored, m.Derived})
	}
	if as == formatTable && len(v.Mismatches) == 0 {
		fmt.Fprintf(c.out, "%s, %s: %d messages and %d attempts derived again; every choice is as it is on record\n", v.Day, v.Timezone, v.Checked, v.Attempts)
	} else if err := as.print(c.out, v, s); err != nil {
		return err
	}
	if len(v.Mismatches) > 0 {
		return failed(nil)
	}
	return nil
}
