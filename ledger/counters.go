package ledger

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// channelRow is a row of lockChannels while it is read.
type channelRow struct {
	name         string
	active       admission.Active
	last         pgtype.Timestamptz
	rate         pgtype.Float8
	since, until pgtype.Timestamptz
	freed        int64
	began        time.Time // when the statement began
}

func (r *channelRow) targets() []any {
	return []any{
		&r.name, &r.active.Max, &r.active.Count, &r.last, &r.rate, &r.since, &r.until,
		&r.freed, &r.began,
	}
}

func (r *channelRow) state() ChannelState {
	return ChannelState{
		Name: r.name, LastAssigned: moment(r.last), Freed: r.freed,
		Gate: admission.Gate{Active: r.active, Ease: admission.Ease{
			Rate: r.rate.Float64, Since: moment(r.since), Until: moment(r.until),
		}},
	}
}

// collectChannels reads channel rows into one entry per name, names ascending. A name without a row
// gets a closed gate, so that no attempt goes to it, and is returned in missing.
func collectChannels(
	rows pgx.Rows, names []string, r *channelRow,
) (states []ChannelState, missing []string, err error) {
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

// subtractFreed subtracts from the active counts the slots that were given back since the last
// claim wrote them. A limit that was lowered below its count then falls with the count.
func subtractFreed(rows pgx.Rows, states []ChannelState) error {
	var name string
	var slots int64
	_, err := pgx.ForEachRow(rows, []any{&name, &slots}, func() error {
		if i := slices.IndexFunc(states, func(s ChannelState) bool { return s.Name == name }); i >= 0 {
			states[i].Gate.Active.Count -= slots - states[i].Freed
			states[i].Freed = slots
		}
		return nil
	})
	for i := range states {
		if a := &states[i].Gate.Active; a.Max > 0 {
			a.Max = max(a.Max, a.Count)
		}
	}
	return err
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
			if i := slices.IndexFunc(channels, func(s ChannelState) bool {
				return s.Name == r.channel
			}); i >= 0 {
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

// find returns the position of a scope, or -1. texts are the texts of the scopes.
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
	channel, active, freed, last := make([]string, n), make([]int64, n), make([]int64, n),
		make([]pgtype.Timestamptz, n)
	for i := range states {
		channel[i], active[i], freed[i], last[i] = states[i].Name, states[i].Gate.Active.Count,
			states[i].Freed, instant(states[i].LastAssigned)
	}
	return []any{channel, active, freed, last}
}

// limitRow is a row of lockLimits while it is read.
type limitRow struct {
	channel, scope, unit, taken string
	seconds                     int
	next                        pgtype.Timestamptz
	c                           admission.Counter
}

func (r *limitRow) targets() []any {
	return []any{
		&r.channel, &r.scope, &r.seconds, &r.unit, &r.c.Currency, &r.c.Limit.Max, &r.c.Max,
		&r.c.Start, &r.c.Granted, &r.next, &r.c.Pace, &r.taken,
	}
}

// counter is the counter of the row. The caller adds what only the routing document has: sliding,
// burst and reserve.
func (r *limitRow) counter() (c admission.Counter, err error) {
	c = r.c
	c.Window = admission.Window(time.Duration(r.seconds) * time.Second)
	c.Start, c.Next, c.Taken = r.c.Start.UTC(), moment(r.next), nil
	if c.Unit, err = admission.ParseUnit(r.unit); err != nil {
		return c, err
	}
	if c.Scope, err = admission.ParseScope(r.scope); err != nil {
		return c, err
	}
	if r.taken != "" {
		err = json.Unmarshal([]byte(r.taken), &c.Taken)
	}
	return c, err
}

// before is a copy of what the claim showed, from before the decisions changed it.
type before struct {
	gates   []gateBefore
	scoped  [][]admission.Counter
	cursors []Cursor
}

// gateBefore is a channel as it was shown.
type gateBefore struct {
	counters []admission.Counter
	active   int64
	last     time.Time
}

func remember(seen *Seen) before {
	b := before{gates: make([]gateBefore, len(seen.Channels)), cursors: slices.Clone(seen.Cursors)}
	for i := range seen.Channels {
		c := &seen.Channels[i]
		b.gates[i] = gateBefore{
			counters: keep(c.Gate.Counters), active: c.Gate.Active.Count,
			last: c.LastAssigned,
		}
	}
	if len(seen.Scoped) > 0 {
		b.scoped = make([][]admission.Counter, len(seen.Scoped))
		for i := range seen.Scoped {
			b.scoped[i] = keep(seen.Scoped[i].Counters)
		}
	}
	return b
}

// keep copies counters and their tallies, because decisions change them in place.
func keep(counters []admission.Counter) []admission.Counter {
	kept := slices.Clone(counters)
	for i := range kept {
		kept[i].Taken = maps.Clone(kept[i].Taken)
	}
	return kept
}

// counterRow is a counter to be written, with its channel.
type counterRow struct {
	channel string
	admission.Counter
}

// differences are what the decisions changed: counters, windows that were left with something
// granted, and channels.
type differences struct {
	changed, left []counterRow
	channels      []ChannelState
}

func differ(was *before, seen *Seen) (d differences) {
	for i := range seen.Channels {
		s := &seen.Channels[i]
		d.counters(s.Name, was.gates[i].counters, s.Gate.Counters)
		if s.Gate.Active.Count != was.gates[i].active || !s.LastAssigned.Equal(was.gates[i].last) {
			d.channels = append(d.channels, *s)
		}
	}
	for i := range seen.Scoped {
		d.counters(seen.Scoped[i].Channel, was.scoped[i], seen.Scoped[i].Counters)
	}
	return d
}

func (d *differences) counters(channel string, before, after []admission.Counter) {
	for i := range after {
		was, is := &before[i], &after[i]
		if was.Granted == is.Granted && was.Max == is.Max && was.Start.Equal(is.Start) &&
			was.Next.Equal(is.Next) && was.Pace == is.Pace && maps.Equal(was.Taken, is.Taken) {
			continue
		}
		d.changed = append(d.changed, counterRow{channel, *is})
		if !was.Start.Equal(is.Start) && was.Granted > 0 {
			left := *was
			left.Reserve = is.Reserve // only decide knows it
			d.left = append(d.left, counterRow{channel, left})
		}
	}
}

// counterArrays are the parameters in limitNames.
func counterArrays(rows []counterRow) []any {
	n := len(rows)
	channel, scope, unit := make([]string, n), make([]string, n), make([]string, n)
	seconds, granted, limit, start := make([]int32, n), make([]int64, n), make([]int64, n),
		make([]time.Time, n)
	reserved, pace := make([]int64, n), make([]int64, n)
	var next []pgtype.Timestamptz // null unless a row has one
	var taken, currency []string  // likewise
	for i := range rows {
		r := &rows[i]
		channel[i], scope[i], unit[i], seconds[i] = r.channel, r.Scope.String(), r.Unit.String(),
			int32(r.Window.Seconds())
		granted[i], limit[i], start[i], reserved[i], pace[i] = r.Granted, r.Max, r.Start,
			r.Reserved(), int64(r.Pace)
		if !r.Next.IsZero() {
			next = sized(next, n)
			next[i] = instant(ceil(r.Next))
		}
		if len(r.Taken) > 0 {
			taken = sized(taken, n)
			taken[i] = encodeTallies(r.Taken)
		}
		if r.Currency != "" {
			currency = sized(currency, n)
			currency[i] = r.Currency
		}
	}
	return []any{
		channel, scope, seconds, unit, granted, limit, start, reserved, next, pace, taken,
		currency,
	}
}

// ceil rounds a time up to whole microseconds, which is what the database stores. Rounded down, a
// release time would come earlier and the rate would exceed the limit.
func ceil(t time.Time) time.Time {
	return t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}

// encodeTallies returns the tallies as JSON.
func encodeTallies(taken map[string]int64) string {
	text, err := json.Marshal(taken)
	if err != nil {
		panic("ledger: " + err.Error()) // strings and integers always encode
	}
	return string(text)
}
