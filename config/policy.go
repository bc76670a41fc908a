package config

import (
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

// readPolicy reads how the limits of a channel are divided: a word, or a mapping with one.
// Policy exact is nil.
func readPolicy(v value) admission.Policy {
	word, factor := v, float64(defaultCurveFactor)
	if v.node.Kind == yaml.MappingNode {
		f, _ := v.fields("policy", "curve_factor")
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
	if c.Policy != nil && !slices.ContainsFunc(c.Limits, func(l admission.Limit) bool { return l.Scope == admission.Scope{} }) {
		v.fail("policy %s divides the limits of the channel, and it has none that count all its messages; add one or remove admission", c.Policy)
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

// readActive reads the bound on attempts under way.
func readActive(v value) ActiveLimit {
	a := ActiveLimit{Until: untilSubmit}
	f, ok := v.fields("max", "until", "hold")
	if !ok {
		return a
	}
	if most, ok := f.need("max", "max: 500"); ok {
		a.Max, _ = most.integer(1, math.MaxInt32)
	}
	if until, ok := f.get("until"); ok {
		a.Until, _ = until.word("until", untils)
	}
	a.Hold = holdOf(a.Until)
	if hold, ok := f.get("hold"); ok {
		a.Hold = readHold(hold, a.Until)
	}
	return a
}

func readHold(v value, until string) time.Duration {
	hold, ok := v.duration(0, day)
	switch {
	case !ok:
	case hold == 0 && until == untilReceipt:
		v.fail("some receipts never arrive, so a slot that is kept until the receipt must come free without it; write for example hold: 10m")
	case hold > 0 && hold < time.Second:
		v.fail("%s is out of bounds; choose 0, or a duration from %s to %s", hold, time.Second, day)
	}
	return hold
}

// holdOf is how long a slot is kept without word unless the document says otherwise.
func holdOf(until string) time.Duration {
	if until == untilReceipt {
		return defaultHold
	}
	return 0
}
