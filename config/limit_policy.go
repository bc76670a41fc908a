package config

import (
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

// readPolicy reads the policy of a channel: a word, or a mapping with one. Policy exact is nil.
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

// checkPolicy reports a policy without a limit to divide.
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
		v.fail("%q is not a number above 0; write for example 0.5", s)
		return 0
	}
	return factor
}

// usualBurst sets the default burst of a sliding limit whose window is longer than a second:
// max/usualBurst. Nine tenths of the max then remain as its pace.
const usualBurst = 10

// settleBursts gives each sliding limit without a burst its default, and caps all bursts at the
// max. So a closed limit has no burst, whatever the document states, and gets it back when it is
// opened.
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

// settleBurst does this for one limit of a channel, or over all channels when channel is empty.
func (r *Routing) settleBurst(l *admission.Limit, channel string) {
	if !l.Sliding {
		return
	}
	if l.Burst == 0 {
		l.Burst = r.DefaultBurst(channel, l)
	}
	l.Burst = min(l.Burst, l.Max)
}

// DefaultBurst is the burst of a sliding limit for which the document states none, on a channel, or
// over all channels when channel is empty. It is large enough for every message and, in windows
// longer than a second, at least a tenth of the max.
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

// BurstWords describe the burst and the pace of a sliding limit: "burst 10, then 51 per 1m". They
// are empty for other limits and for a closed one.
func BurstWords(l *admission.Limit) string {
	if !l.Sliding || l.Max <= 0 {
		return ""
	}
	return "burst " + burstText(l)
}

// burstText is the burst with the pace after it.
func burstText(l *admission.Limit) string {
	return number(l.Burst) + ", then " + number(l.Sustained()) + " per " + l.Window.String()
}
