package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// channelRow is a row of channelColumns while it is read.
type channelRow struct {
	name             string
	active           admission.Active
	last             pgtype.Timestamptz
	rate             pgtype.Float8
	since, until     pgtype.Timestamptz
	began            time.Time // when the statement did
	withoutBeginning bool
}

func (r *channelRow) targets() []any {
	t := []any{&r.name, &r.active.Max, &r.active.Count, &r.last, &r.rate, &r.since, &r.until}
	if r.withoutBeginning {
		return t
	}
	return append(t, &r.began)
}

func (r *channelRow) state() ChannelState {
	return ChannelState{
		Name: r.name, LastAssigned: moment(r.last),
		Gate: admission.Gate{Active: r.active, Ease: admission.Ease{Rate: r.rate.Float64, Since: moment(r.since), Until: moment(r.until)}},
	}
}

// collectChannels reads channel rows into one entry per name, names ascending. A name without a
// row gets a closed gate, so that decide gives nothing to it, and is returned as missing.
func collectChannels(rows pgx.Rows, names []string, r *channelRow) (states []ChannelState, missing []string, err error) {
	states = make([]ChannelState, len(names))
	_, err = pgx.ForEachRow(rows, r.targets(), func() error {
		if i := slices.Index(names, r.name); i >= 0 {
			states[i] = r.state()
		}
		return nil
	})
	for i, name := range names {
		if states[i].Name == "" {
			states[i].Name, states[i].Gate.Active = name, admission.Active{Max: 1, Count: 1}
			missing = append(missing, name)
		}
	}
	return states, missing, err
}

// collectLimits adds counters to the channels, ascending by name, and to the scopes, ascending by
// channel and text, that they belong to.
func collectLimits(rows pgx.Rows, channels []ChannelState, scoped []ScopeState) error {
	texts := make([]string, len(scoped))
	for i := range scoped {
		texts[i] = scoped[i].Scope.String()
	}
	var r limitRow
	_, err := pgx.ForEachRow(rows, r.targets(), func() error {
		c, err := r.counter()
		if err != nil {
			return err
		}
		if c.Scope == (admission.Scope{}) {
			if i := slices.IndexFunc(channels, func(s ChannelState) bool { return s.Name == r.channel }); i >= 0 {
				channels[i].Gate.Counters = append(channels[i].Gate.Counters, c)
			}
			return nil
		}
		if i := find(scoped, texts, r.channel, r.scope); i >= 0 {
			scoped[i].Counters = append(scoped[i].Counters, c)
		}
		return nil
	})
	return err
}

// find is the position of a scope, or -1. texts are those of the scopes.
func find(scoped []ScopeState, texts []string, channel, text string) int {
	low, high := 0, len(scoped)
	for low < high {
		mid := (low + high) / 2
		switch cmp.Or(cmp.Compare(scoped[mid].Channel, channel), cmp.Compare(texts[mid], text)) {
		case -1:
			low = mid + 1
		case 0:
			return mid
		default:
			high = mid
		}
	}
	return -1
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
