package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/simulate"
)

// simulateFlags are the arguments of simulate admission.
type simulateFlags struct {
	scenario string
	policies []string
	as       plotFormat
}

func (c *cli) simulateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Try out how limits are shared, without sending anything",
	}
	cmd.AddCommand(c.simulateAdmissionCommand())
	return cmd
}

func (c *cli) simulateAdmissionCommand() *cobra.Command {
	f := &simulateFlags{as: plotFormat{format: formatTable}}
	cmd := &cobra.Command{
		Use:   "admission --scenario FILE",
		Short: "Compare the admission policies on a scenario",
		Long: `Replays the arrivals of a scenario through each admission policy and shows what it
admits, what it queues although a slot stays free, what it lets through beyond the limit and what
it leaves unused. It needs no broker and no database. docs/admission.md tells what the policies
are for, and deploy/scenarios has the examples that it refers to.`,
		Example: `  dispatcher simulate admission --scenario deploy/scenarios/uneven-workers.json
  dispatcher simulate admission --scenario spike.json --policy curve --policy exact \
      --format svg > spike.svg`,
		Args: cobra.NoArgs,
		RunE: work(func(_ context.Context, _ []string) error { return c.simulateAdmission(f) }),
	}
	cmd.Flags().StringVar(&f.scenario, "scenario", "", `scenario in JSON; "-" reads standard input`)
	cmd.Flags().StringArrayVar(&f.policies, "policy", nil, "only this policy, repeatable: even, "+
		"curve, counter or exact")
	cmd.Flags().Var(&f.as, "format", "output format")
	return cmd
}

// plotFormat is a format, or svg.
type plotFormat struct {
	format
	svg bool
}

func (f *plotFormat) Type() string { return "table|json|csv|svg" }

func (f *plotFormat) String() string {
	if f.svg {
		return "svg"
	}
	return f.format.String()
}

func (f *plotFormat) Set(s string) error {
	f.svg = s == "svg"
	if !f.svg && f.format.Set(s) != nil {
		return errors.New("must be table, json, csv or svg")
	}
	return nil
}

// simulation is the result of simulate admission.
type simulation struct {
	Description   string             `json:"description,omitempty"`
	Limit         int64              `json:"limit"`
	Active        int64              `json:"active"`
	Region        string             `json:"region"`
	Workers       int64              `json:"workers"`
	Window        string             `json:"window"`
	Windows       int                `json:"windows"`
	StateInterval string             `json:"state_interval"`
	Policies      []simulate.Outcome `json:"policies"`
}

func (c *cli) simulateAdmission(f *simulateFlags) error {
	if f.scenario == "" {
		return misused(errors.New("--scenario is missing: name a scenario, such as one of " +
			"deploy/scenarios"))
	}
	name, raw, err := c.readInput(f.scenario)
	if err != nil {
		return usage(fmt.Errorf("--scenario: %w", err))
	}
	s, err := simulate.Read(name, raw)
	if err != nil {
		return usage(err)
	}
	policies, err := policiesOf(f.policies, s)
	if err != nil {
		return misused(err)
	}
	outcomes := replayAll(s, policies)
	if f.as.svg {
		svg, err := simulate.Plot(s, outcomes)
		if err == nil {
			_, err = fmt.Fprint(c.out, svg)
		}
		return err
	}
	as := f.as.format
	if as == formatTable && s.Description != "" {
		fmt.Fprintln(c.out, wrapped(s.Description, 100))
	}
	err = as.write(c.out, simulation{
		Description: s.Description, Limit: s.Limit, Active: s.Active, Region: s.Region,
		Workers: s.Total,
		Window:  admission.Window(s.Window).String(), Windows: s.Windows,
		StateInterval: s.StateInterval.String(), Policies: outcomes,
	}, simulationSheet(outcomes, as))
	if as == formatTable {
		for _, line := range simulationLegend(outcomes) {
			fmt.Fprintln(c.out, wrapped(line, 120))
		}
	}
	return err
}

// policiesOf are the named policies, or all when none is named.
func policiesOf(names []string, s *simulate.Scenario) ([]admission.Policy, error) {
	all := s.Policies()
	for _, name := range names {
		if _, err := admission.ParsePolicy(name, 1); err != nil || name == "" {
			return nil, fmt.Errorf("--policy: %q is none of even, curve, counter, exact", name)
		}
	}
	return slices.DeleteFunc(all, func(p admission.Policy) bool {
		return len(names) > 0 && !slices.Contains(names, p.String())
	}), nil
}

// replayAll replays the same arrivals under each policy, and measures the time.
func replayAll(s *simulate.Scenario, policies []admission.Policy) []simulate.Outcome {
	events := s.Events()
	var outcomes []simulate.Outcome
	for _, p := range policies {
		start := time.Now()
		o := s.Replay(p, events)
		if len(events) > 0 {
			o.DecisionNs = float64(time.Since(start).Nanoseconds()) / float64(len(events))
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// simulationSheet has one row per policy. If no messages arrived, a table omits the columns about
// them.
func simulationSheet(outcomes []simulate.Outcome, as format) sheet {
	columns := []column[simulate.Outcome]{
		{key: "policy"},
		{key: "free"},
		{key: "region_slots", head: "region"},
		{key: "anywhere_slots", head: "anywhere"},
		{key: "per_worker", head: "per worker"},
	}
	if as == formatCSV {
		columns = append(columns, keys[simulate.Outcome]("", "arrived", "admitted", "queued",
			"early",
			"overtaken", "over", "unused", "stranded", "early_percent", "overtaken_percent",
			"over_percent",
			"unused_percent", "stranded_percent", "calls_per_message", "latency_ms",
			"latency_p95_ms",
			"decision_ns")...)
	} else if outcomes[0].Arrived > 0 {
		columns = append(columns, column[simulate.Outcome]{key: "admitted"},
			column[simulate.Outcome]{key: "queued"})
		for _, figure := range []struct{ key, head string }{
			{"early_percent", "early %"},
			{"overtaken_percent", "overtaken %"},
			{"over_percent", "over %"},
			{"unused_percent", "unused %"},
			{"calls_per_message", "calls"},
			{"latency_ms", "ms"},
		} {
			columns = append(columns, column[simulate.Outcome]{
				head: figure.head, right: true, cell: func(o *simulate.Outcome) any {
					return shortFigure(valueOf(o, figure.key))
				},
			})
		}
	}
	s := list(as, outcomes, columns...)
	s.tight = true
	return s
}

// shortFigure writes a figure with at most two decimals, and a small one not as zero.
func shortFigure(value any) string {
	figure, _ := value.(float64)
	if figure > 0 && figure < 0.005 {
		return "<0.01"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", figure), ".00")
}

// simulationLegend explains the columns below the table; empty when no messages arrived. Measured
// figures are separated from modelled ones.
func simulationLegend(outcomes []simulate.Outcome) []string {
	if outcomes[0].Arrived == 0 {
		return nil
	}
	measured := make([]string, len(outcomes))
	for i := range outcomes {
		measured[i] = fmt.Sprintf("%s %.0f", outcomes[i].Policy, outcomes[i].DecisionNs)
	}
	return []string{
		"early: queued although a slot stayed free; overtaken: queued, and a later one got in; " +
			"over: beyond the limit; unused: left at window ends.",
		"calls: per message, to counters; ms: their time, modelled by call_ms. Measured ns of a " +
			"decision: " + strings.Join(measured, ", ") + ".",
	}
}
