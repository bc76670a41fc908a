package main

import (
	"fmt"

	"dispatcher/cmd/dispatcher/internal/control"
)

// printRamp prints the steps and then the sentence.
func (ch *change) printRamp(started *control.RampStarted, sentence string) error {
	c, as := ch.cli, ch.flags.as
	rows := rampSheet([]control.Ramp{started.Ramp}, as)
	if len(started.Plan) > 0 {
		rows = planSheet(started, as)
	}
	if as != formatTable {
		as.warn(c, []string{sentence})
		return as.write(c.out, started, rows)
	}
	if len(started.Plan) > 0 {
		rows.draw(c.out)
	}
	fmt.Fprintln(c.out, sentence)
	return nil
}

// planSheet has a column for each channel that moves. CSV also has the ramp's number, which is
// empty in a dry run.
func planSheet(started *control.RampStarted, as format) sheet {
	columns := []column[control.RampStep]{
		{name: "ramp", only: formatCSV, cell: func(*control.RampStep) any {
			if !started.Applied {
				return ""
			}
			return started.Ramp.ID
		}},
		{key: "step"},
		{name: "at", style: zoned, cell: func(r *control.RampStep) any {
			if r.At.IsZero() {
				return "now"
			}
			return r.At
		}},
	}
	for _, channel := range movingChannels(&started.Ramp) {
		columns = append(columns, column[control.RampStep]{
			name: channel, right: true, cell: func(r *control.RampStep) any { return r.Weights[channel] },
		})
	}
	steps := append([]control.RampStep{{Weights: started.Ramp.From}}, started.Plan...)
	return list(as, steps, columns...)
}
