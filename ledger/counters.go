package ledger

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// collectChannels reads the locked channel rows into one entry per name. A name
// without a row gets a closed gate, so that decide gives nothing to it, and is returned as missing.
func collectChannels(rows pgx.Rows, names []string) (states []ChannelState, missing []string, err error) {
	states = make([]ChannelState, len(names))
	found := make([]bool, len(names))
	var name string
	var active admission.Active
	var last pgtype.Timestamptz
	_, err = pgx.ForEachRow(rows, []any{&name, &active.Max, &active.Count, &last}, func() error {
		if i := slices.Index(names, name); i >= 0 {
			states[i].Gate.Active, states[i].LastAssigned, found[i] = active, moment(last), true
		}
		return nil
	})
	for i, name := range names {
		states[i].Name = name
		if !found[i] {
			states[i].Gate.Active = admission.Active{Max: 1, Count: 1}
			missing = append(missing, name)
		}
	}
	return states, missing, err
}

// collectLimits adds the locked counters to their channels.
func collectLimits(rows pgx.Rows, states []ChannelState) error {
	var name, unit string
	var seconds int
	var c admission.Counter
	_, err := pgx.ForEachRow(rows, []any{&name, &seconds, &unit, &c.Limit.Max, &c.Max, &c.Start, &c.Granted}, func() error {
		i := slices.IndexFunc(states, func(s ChannelState) bool { return s.Name == name })
		if i < 0 {
			return nil
		}
		counter := c
		counter.Window = admission.Window(time.Duration(seconds) * time.Second)
		counter.Start = c.Start.UTC()
		var err error
		if counter.Unit, err = admission.ParseUnit(unit); err != nil {
			return err
		}
		states[i].Gate.Counters = append(states[i].Gate.Counters, counter)
		return nil
	})
	return err
}

// gateBefore is a channel as it was shown to decide.
type gateBefore struct {
	counters []admission.Counter
	active   int64
	last     time.Time
}

func remember(states []ChannelState) []gateBefore {
	before := make([]gateBefore, len(states))
	for i := range states {
		before[i] = gateBefore{
			counters: slices.Clone(states[i].Gate.Counters),
			active:   states[i].Gate.Active.Count, last: states[i].LastAssigned,
		}
	}
	return before
}

// counterRow is a counter of a channel on its way into the database.
type counterRow struct {
	channel string
	admission.Counter
}

// differences lists what decide changed: counters, the windows that were left with
// something granted, and channels.
func differences(before []gateBefore, after []ChannelState) (changed, left []counterRow, channels []ChannelState) {
	for i := range after {
		s := &after[i]
		for j := range s.Gate.Counters {
			was, is := before[i].counters[j], s.Gate.Counters[j]
			if was.Granted == is.Granted && was.Max == is.Max && was.Start.Equal(is.Start) {
				continue
			}
			changed = append(changed, counterRow{s.Name, is})
			if !was.Start.Equal(is.Start) && was.Granted > 0 {
				left = append(left, counterRow{s.Name, was})
			}
		}
		if s.Gate.Active.Count != before[i].active || !s.LastAssigned.Equal(before[i].last) {
			channels = append(channels, *s)
		}
	}
	return changed, left, channels
}

// counterArrays are the parameters of updateLimits and insertHistory.
func counterArrays(rows []counterRow) []any {
	n := len(rows)
	channel, unit := make([]string, n), make([]string, n)
	seconds, granted, limit, start := make([]int32, n), make([]int64, n), make([]int64, n), make([]time.Time, n)
	for i := range rows {
		r := &rows[i]
		channel[i], unit[i], seconds[i] = r.channel, r.Unit.String(), int32(r.Window.Seconds())
		granted[i], limit[i], start[i] = r.Granted, r.Max, r.Start
	}
	return []any{channel, seconds, unit, granted, limit, start}
}

// channelArrays are the parameters of updateChannels.
func channelArrays(states []ChannelState) []any {
	n := len(states)
	channel, active, last := make([]string, n), make([]int64, n), make([]pgtype.Timestamptz, n)
	for i := range states {
		channel[i], active[i], last[i] = states[i].Name, states[i].Gate.Active.Count, instant(states[i].LastAssigned)
	}
	return []any{channel, active, last}
}
