package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// VersionShare is how many messages count under a version's agreed shares.
type VersionShare struct {
	Version int64 `json:"version"`
	Drawn   int64 `json:"drawn"`
	Carried int64 `json:"carried"`
}

// Waterfall leads from the messages that a channel was to carry to those that it carried. Agreed
// and the steps add up to Carried, and over all channels the steps of moved messages come to zero.
type Waterfall struct {
	Channel string          `json:"channel"`
	Agreed  int64           `json:"agreed"` // of the messages drawn, by the agreed share
	Steps   []WaterfallStep `json:"steps"`
	Carried int64           `json:"carried"`
}

// WaterfallStep is one cause of a difference.
type WaterfallStep struct {
	// Cause is that of a Move, or one of the steps below.
	Cause string `json:"cause"`
	// Channel is where the messages went, or where they came from; empty for neither.
	Channel string `json:"channel"`
	// Messages are negative for those that the channel lost.
	Messages int64 `json:"messages"`
}

// Steps that are no cause of a Move.
const (
	// stepDraws is chance: what the draws gave the channel beyond the shares that they went by.
	stepDraws = "draws"
	// stepNotDrawn are first choices that a mode without draws made, on a day that has both.
	stepNotDrawn = "not_drawn"
	// stepOtherDay are messages that were received on another day than carried, and those that two
	// channels carried because one was sent once more.
	stepOtherDay = "other_day"
)

// SumWaterfalls adds up waterfalls of several periods, channel by channel in the order in which
// they come. The steps keep their order: chance and ends first, then what went, then what came.
func SumWaterfalls(all []Waterfall) (out []Waterfall) {
	for _, w := range all {
		at := slices.IndexFunc(out, func(o Waterfall) bool { return o.Channel == w.Channel })
		if at < 0 {
			at = len(out)
			out = append(out, Waterfall{Channel: w.Channel})
		}
		sum := &out[at]
		sum.Agreed += w.Agreed
		sum.Carried += w.Carried
		for _, s := range w.Steps {
			same := slices.IndexFunc(sum.Steps, func(o WaterfallStep) bool {
				return o.Cause == s.Cause && o.Channel == s.Channel &&
					(s.Channel == "" || (o.Messages < 0) == (s.Messages < 0))
			})
			if same < 0 {
				sum.Steps = append(sum.Steps, s)
			} else {
				sum.Steps[same].Messages += s.Messages
			}
		}
	}
	for i := range out {
		slices.SortStableFunc(out[i].Steps, func(a, b WaterfallStep) int {
			return cmp.Compare(a.kind(), b.kind())
		})
	}
	return out
}

// kind orders steps as waterfall makes them.
func (s *WaterfallStep) kind() int {
	first := []string{causeHealth, stepDraws, stepNotDrawn}
	switch {
	case s.Channel == "" && slices.Contains(first, s.Cause):
		return slices.Index(first, s.Cause)
	case s.Channel == "" && s.Cause != stepOtherDay:
		return len(first)
	case s.Channel == "":
		return len(first) + 1
	case s.Messages < 0:
		return len(first) + 2
	}
	return len(first) + 3
}

// versionShares lists the versions that drew, or under which drawn messages were carried.
func (d *routeDay) versionShares() []VersionShare {
	out := []VersionShare{}
	all := slices.Collect(maps.Keys(d.drawn.versions))
	all = slices.AppendSeq(all, maps.Keys(d.traffic.versions))
	slices.Sort(all)
	for _, version := range slices.Compact(all) {
		one := VersionShare{Version: version}
		if v := d.drawn.versions[version]; v != nil {
			one.Drawn = v.total
		}
		if v := d.traffic.versions[version]; v != nil {
			one.Carried = v.total
		}
		out = append(out, one)
	}
	return out
}

// waterfall is that of each channel.
func (d *routeDay) waterfall() []Waterfall {
	out := []Waterfall{}
	if d.drawn.total == 0 {
		return out
	}
	agreed := apportion(d.drawn.agreed, d.channels, d.drawn.total)
	effective := apportion(d.drawn.effective, d.channels, d.drawn.total)
	for i, channel := range d.channels {
		w := Waterfall{Channel: channel, Agreed: agreed[i], Carried: d.carried[channel]}
		chosen := d.counts[channel]
		w.step(causeHealth, "", effective[i]-agreed[i])
		w.step(stepDraws, "", d.drawn.counts[channel]-effective[i])
		w.step(stepNotDrawn, "", chosen-d.drawn.counts[channel])
		rest := chosen
		for _, m := range d.moves[channel] {
			if m.Channel == "" && m.Cause != causeHealth {
				w.step(m.Cause, "", -m.Messages)
				rest -= m.Messages
			}
		}
		moved := w.moved(d)
		for _, step := range moved {
			rest += step.Messages
		}
		w.step(stepOtherDay, "", w.Carried-rest)
		w.Steps = append(w.Steps, moved...)
		out = append(out, w)
	}
	return out
}

// step adds a step that is one.
func (w *Waterfall) step(cause, channel string, messages int64) {
	if messages != 0 {
		w.Steps = append(w.Steps, WaterfallStep{cause, channel, messages})
	}
}

// moved are the messages that other channels carried of this one's first choices, then those that
// it carried of theirs.
func (w *Waterfall) moved(d *routeDay) (out []WaterfallStep) {
	for _, m := range d.moves[w.Channel] {
		if m.Channel != "" {
			out = append(out, WaterfallStep{m.Cause, m.Channel, -m.Messages})
		}
	}
	own := len(out)
	for from, moves := range d.moves {
		for _, m := range moves {
			if m.Channel == w.Channel {
				out = append(out, WaterfallStep{m.Cause, from, m.Messages})
			}
		}
	}
	slices.SortFunc(out[own:], func(a, b WaterfallStep) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Cause, b.Cause),
			cmp.Compare(a.Channel, b.Channel))
	})
	return out
}

// apportion rounds expected messages to whole ones that come to the total: the largest fractions
// are rounded up (the method of largest remainders).
func apportion(expected map[string]float64, channels []string, total int64) []int64 {
	out := make([]int64, len(channels))
	order, remainders := make([]int, len(channels)), make([]float64, len(channels))
	for i, channel := range channels {
		whole, remainder := math.Modf(expected[channel] + roundingError)
		out[i], remainders[i], order[i] = int64(whole), remainder, i
		total -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(remainders[b], remainders[a])
	})
	for _, i := range order {
		if total <= 0 {
			break
		}
		out[i]++
		total--
	}
	return out
}
