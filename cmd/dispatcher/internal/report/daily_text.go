package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Causes other than exclusion reasons.
const (
	// causeRejected: the provider rejected the message itself, or its number was blocked.
	causeRejected  = "rejected"
	causeOptedOut  = "opted_out"        // the recipient has opted out from the tenant
	causeFailed    = "failed"           // no channel took it
	causeExpired   = "expired"          // its deadline passed
	causeCancelled = "cancelled"        // an operator withdrew it
	causeNoChannel = "no_channel"       // no channel may take it under the routing
	causeNoAnswer  = "no_answer"        // it is not known whether a channel took it
	causeOpen      = "open"             // it has not ended yet
	causeHealth    = "health_weighting" // a lowered weight left the channel fewer draws
	causeRefused   = "refused"
	causeUnknown   = "unknown" // the first attempt got no answer, and the message was sent again
	// causeNoReceipt: it was accepted, no receipt came in time, and the next channel got it too.
	causeNoReceipt = "no_receipt"
)

// endCauses are the causes of messages that ended, and that no channel is known to have taken.
var endCauses = []string{
	causeRejected, causeOptedOut, causeFailed, causeExpired, causeCancelled, causeNoChannel,
	causeNoAnswer,
}

// Move counts messages that a channel did not carry although they were drawn for it, or would have
// been by its agreed share.
type Move struct {
	// Cause is the reason, a word that docs/audit.md lists.
	Cause string `json:"cause"`
	// Limit names the limit without a free slot, as admission.Key.On, if that is the cause and was
	// recorded.
	Limit string `json:"limit,omitempty"`
	// Channel carried them instead. It is empty when no channel did, or when they went to several
	// others by their draws.
	Channel  string `json:"channel"`
	Messages int64  `json:"messages"`
	// Segments and Costs are what that channel billed for them.
	Segments int64      `json:"segments,omitempty"`
	Costs    []MoveCost `json:"costs,omitempty"`
}

// MoveCost is an amount in one currency.
type MoveCost struct {
	Currency   string `json:"currency"`
	CostMicros int64  `json:"cost_micros"`
}

// text writes the verdict in sentences, the most important first.
func (t *traffic) text(v *RouteVerdict) []string {
	var out []string
	if t.nobodyCarried(v.DrawsVerdict) {
		out = append(out, t.lostSentence())
	}
	for _, channel := range t.off() {
		if v.TrafficVerdict == Moved {
			out = append(out, t.sentence(channel))
		}
	}
	switch v.TrafficVerdict {
	case Kept:
		out = append(out, t.keptSentence())
	case TooFew:
		out = append(out, fmt.Sprintf("%s carried: too few to tell whether the agreed shares were "+
			"kept.",
			plural(t.traffic.total, "message")))
	case NoWeight:
		return append(out, "The route does not draw, so no share is agreed and there is nothing "+
			"to keep.")
	}
	out = append(out, t.drawsSentence(v))
	if len(v.Versions) > 1 {
		out = append(out, versionsSentence(v.Versions))
	}
	if sentence := t.timeSentence(v); sentence != "" {
		out = append(out, sentence)
	}
	return out
}

// versionsSentence lists the versions over which the agreed shares are the mean.
func versionsSentence(versions []VersionShare) string {
	words := make([]string, len(versions))
	for i, v := range versions {
		words[i] = fmt.Sprintf("version %d (%d drawn, %d carried", v.Version, v.Drawn, v.Carried)
		if v.InForceSeconds > 0 {
			words[i] += ", in force for " + inForceFor(v.InForceSeconds)
		}
		words[i] += ")"
	}
	return "The agreed shares are those of " + list(words) + ", weighted by these messages."
}

// lostSentence is for a day on which most messages were not carried.
func (t *traffic) lostSentence() string {
	var ends []string
	for _, ended := range t.lost() {
		ends = append(ends, fmt.Sprintf("%d %s", ended.Messages, endWords[ended.Cause]))
	}
	return fmt.Sprintf("%d of %s were carried: %s.",
		t.traffic.total, plural(t.drawn.total, "drawn message"), strings.Join(ends, ", "))
}

// keptSentence says that the shares were kept, and names the largest difference.
func (t *traffic) keptSentence() string {
	worst := slices.MaxFunc(t.channels, func(a, b string) int {
		return cmp.Compare(math.Abs(t.deviation(a)), math.Abs(t.deviation(b)))
	})
	difference := fmt.Sprintf("; the largest difference is %s with %s instead of %s", worst,
		Percent(t.share(worst)), Percent(t.agreedShare(worst)))
	switch {
	case len(t.off()) == 0:
		return "The channels carried what was agreed, within " + points(t.tolerance) + difference + "."
	case t.fit.Verdict == Sticky, t.fit.Verdict == TooFew:
		return "The channels carried what was drawn for them" + difference +
			", because some recipients got many messages."
	}
	return "The channels carried what was agreed" + difference +
		", which chance explains with so few messages."
}

// points writes a difference of shares in percentage points.
func points(share float64) string {
	number := strconv.FormatFloat(math.Round(share*1e4)/100, 'f', -1, 64)
	if number == "1" {
		return "1 point"
	}
	return number + " points"
}

// drawsSentence says whether the draws were fair.
func (t *traffic) drawsSentence(v *RouteVerdict) string {
	switch v.DrawsVerdict {
	case Fair:
		return fmt.Sprintf("The draws were fair (%s%s).", Probability(*v.PValue), t.overVersions())
	case Unfair:
		return fmt.Sprintf("The draws were not fair (%s%s): %s.",
			Probability(*v.PValue), t.overVersions(), t.worstDraw())
	case OneWay:
		return "Only one channel has a weight, so there is nothing to draw."
	case Sticky:
		return "The route draws by recipient, so its draws are not tested: messages of one " +
			"recipient are not independent."
	}
	return "There were too few draws to tell whether they were fair."
}

func (t *traffic) overVersions() string {
	n := 0
	for _, v := range t.drawn.versions {
		if !v.sticky {
			n++
		}
	}
	if n > 1 {
		return fmt.Sprintf(" over %d versions", n)
	}
	return ""
}

// worstDraw names the channel and version that contribute most to the chi-square.
func (t *traffic) worstDraw() string {
	var text string
	most := -1.0
	for _, version := range slices.Sorted(maps.Keys(t.drawn.versions)) {
		v := t.drawn.versions[version]
		if v.sticky {
			continue
		}
		for _, channel := range t.channels {
			got, want := float64(v.counts[channel]), v.effective[channel]*float64(v.total)
			x := (got - want) * (got - want) / max(want, 0.001)
			if x > most && got != want {
				most = x
				text = fmt.Sprintf("under version %d they picked %s for %s of the messages "+
					"instead of %s",
					version, channel, Percent(got/float64(v.total)), Percent(v.effective[channel]))
			}
		}
	}
	return text
}

// sentence compares the carried with the agreed share of a channel, with causes.
func (t *traffic) sentence(channel string) string {
	text := fmt.Sprintf("%s carried %s instead of %s",
		channel, Percent(t.share(channel)), Percent(t.agreedShare(channel)))
	why := t.gained(channel)
	if t.deviation(channel) < 0 {
		why = t.lostWords(channel)
	}
	if len(why) == 0 {
		return text + "."
	}
	return text + ": " + strings.Join(why, "; ") + "."
}

// mostCauses bounds the causes that a sentence lists.
const mostCauses = 3

// lostWords lists the causes for which a channel carried less, the most frequent first.
func (t *traffic) lostWords(channel string) (out []string) {
	sums := map[cause]int64{}
	for _, m := range t.moves[channel] {
		sums[m.of(channel)] += m.Messages
	}
	for _, why := range byMessages(sums) {
		n := sums[why]
		switch ended, ok := endVerbs[why.word]; {
		case len(out) == mostCauses:
			return append(out, "other causes are in the JSON")
		case ok:
			out = append(out, t.part(channel, n)+" "+ended)
		case why.word == causeHealth:
			out = append(out, fmt.Sprintf(
				"health weighting had lowered its weight, which took about %s from it", plural(n,
					"message")))
		default:
			out = append(out, fmt.Sprintf("%s went to %s (%s)",
				t.part(channel, n), t.wentTo(why), t.why(why)))
		}
	}
	return out
}

// part writes a number of messages as a part of those drawn for the channel.
func (t *traffic) part(channel string, n int64) string {
	if all := t.counts[channel]; all >= n {
		return fmt.Sprintf("%d of %s", n, plural(all, "message"))
	}
	return plural(n, "message") // more than were drawn: some were drawn on the day before
}

// why writes a cause in words. If the limit was not recorded, it names those that it may be about.
func (t *traffic) why(c cause) string {
	doc := t.docs[c]
	if c.limit != "" {
		return limitExclusion(doc, c.word, c.limit)
	}
	var limits []string
	for _, l := range doc.LimitsOf(c.channel) {
		if c.word == "no_slot" && concerns(c.word, &l) {
			limits = append(limits, maximum(&l)+" "+windowWords[l.Window].article)
		}
	}
	switch len(limits) {
	case 0:
		return exclusion(c.word)
	case 1:
		return "its limit of " + limits[0] + " used up"
	}
	return "one of its limits (" + strings.Join(limits, ", ") + ") used up"
}

// wentTo names the channels that carried what another lost for one cause.
func (t *traffic) wentTo(why cause) string {
	sums := map[string]int64{}
	for _, m := range t.moves[why.channel] {
		if m.of(why.channel) == why {
			sums[m.Channel] += m.Messages
		}
	}
	names := byNumber(sums)
	if len(names) > 1 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%d)", name, sums[name])
		}
	}
	return list(names)
}

// gained lists the other channels whose messages a channel carried, with causes.
func (t *traffic) gained(channel string) (out []string) {
	sums := map[cause]int64{}
	for from, moves := range t.moves {
		for _, m := range moves {
			if m.Channel == channel {
				sums[m.of(from)] += m.Messages
			}
		}
	}
	for _, why := range byMessages(sums) {
		if len(out) == mostCauses {
			return append(out, "other causes are in the JSON")
		}
		out = append(out, fmt.Sprintf("%s drawn for %s went to it (%s: %s)",
			plural(sums[why], "message"), why.channel, why.channel, t.why(why)))
	}
	return out
}

// of is the cause of a move of messages that were drawn for a channel.
func (m *Move) of(channel string) cause { return cause{channel, m.Cause, m.Limit} }

// byMessages returns the causes, the one with the most messages first.
func byMessages(sums map[cause]int64) []cause {
	return slices.SortedFunc(maps.Keys(sums), func(a, b cause) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.channel, b.channel),
			cmp.Compare(a.word, b.word), cmp.Compare(a.limit, b.limit))
	})
}

// byNumber returns the keys, the one with the largest number first.
func byNumber(sums map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
}
