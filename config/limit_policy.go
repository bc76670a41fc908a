package config

import (
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

// readPolicy reads how the limits of a channel are divided: a word, or a mapping with one.
// Policy exact is nil.
func readPolicy(v value) admission.Policy {
	word, factor := v, float64(defaultCurveFactor)
	if v.node.Kind == yaml.MappingNode {
		f, _ := v.fields(policyPart)
		named, ok := f.need("policy", "policy: curve")
		if !ok {
			return nil
		}
		word = named
		if c, has := f.get("curve_factor"); has {
			factor = c.curveFactor(named.node.Value)
		}
	}
	s, ok := word.word("policy", policies)
	if !ok || s == exactPolicy || factor == 0 {
		return nil
	}
	policy, err := admission.ParsePolicy(s, factor)
	if err != nil {
		word.fail("%v", err)
	}
	return policy
}

// checkPolicy reports a policy that would divide nothing.
func checkPolicy(v value, c *Channel) {
	if c.Policy != nil && !slices.ContainsFunc(c.Limits,
		func(l admission.Limit) bool { return l.Scope == admission.Scope{} }) {
		v.fail("policy %s divides the limits of the channel, and it has none that count all its "+
			"messages; add one or remove admission", c.Policy)
	}
}

// curveFactor reads the exponent of policy curve; 0 after a problem.
func (v value) curveFactor(policy string) float64 {
	if policy != "curve" {
		v.fail("only policy curve has a curve_factor; remove it or write policy: curve")
		return 0
	}
	s, ok := v.raw("a number such as 0.5")
	if !ok {
		return 0
	}
	factor, err := strconv.ParseFloat(s, 64)
	if err != nil || !(factor > 0) || math.IsInf(factor, 0) {
		v.fail("%q is no number above 0; write for example 0.5", s)
		return 0
	}
	return factor
}

// usualBurst is the part of the max of a sliding limit, one in so many, that its burst is unless
// the document states another, where the window is longer than a second. Nine tenths of the max are
// sustained behind it then.
const usualBurst = 10

// settleBursts gives each sliding limit that states no burst its default. One that is closed has
// none, whatever it states, so that it finds its burst again when it is opened.
func (r *Routing) settleBursts() {
	for i := range r.Channels {
		c := &r.Channels[i]
		for j := range c.Limits {
			r.settleBurst(&c.Limits[j], c.Name)
		}
	}
	for i := range r.Limits {
		r.settleBurst(&r.Limits[i], "")
	}
}

// settleBurst settles that of a limit on a channel, or over all channels when it has no name.
func (r *Routing) settleBurst(l *admission.Limit, channel string) {
	if !l.Sliding {
		return
	}
	if l.Burst == 0 {
		l.Burst = r.DefaultBurst(channel, l)
	}
	l.Burst = min(l.Burst, l.Max)
}

// DefaultBurst is the burst that a sliding limit of a channel, or over all channels when none is
// named, has when the document states none: what lets every message pass, and no more than a tenth
// of its max otherwise.
func (r *Routing) DefaultBurst(channel string, l *admission.Limit) int64 {
	burst := int64(1)
	if l.Unit == admission.Segments {
		burst = r.longest(l.Scope, channel)
	}
	if l.Window > admission.Second {
		burst = max(burst, l.Max/usualBurst)
	}
	return min(burst, l.Max)
}

// BurstWords say how a sliding limit gives away its window: "burst 10, then 51 per 1m". They are
// empty for others and for one that is closed.
func BurstWords(l *admission.Limit) string {
	if !l.Sliding || l.Max <= 0 {
		return ""
	}
	return "burst " + burstText(l)
}

// burstText is the value of burst with what is sustained behind it.
func burstText(l *admission.Limit) string {
	return number(l.Burst) + ", then " + number(Sustained(l)) + " per " + l.Window.String()
}

// Sustained is how many units a window of the limit takes behind a burst; all of its max unless it
// slides.
func Sustained(l *admission.Limit) int64 {
	if !l.Sliding {
		return l.Max
	}
	return l.Max - l.Burst + 1
}
