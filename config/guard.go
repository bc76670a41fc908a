package config

import (
	"fmt"
	"slices"
)

// GuardBy says by what a guard groups messages.
type GuardBy string

// Groupings of guards.
const (
	ByTenant      GuardBy = "tenant"
	ByCallingCode GuardBy = "calling_code" // of the recipients' numbers
	ByPrefix      GuardBy = "prefix"       // the first Guard.Digits of the recipients' numbers
)

// GuardAction is what a guard does when it trips.
type GuardAction string

// Actions of guards.
const (
	GuardPauses GuardAction = "pause" // the tenant, or numbers with the calling code or prefix
	GuardWarns  GuardAction = "warn"
)

// Guard looks for unusual traffic. It trips when an hour has more messages than Times the mean of
// that hour in the last Days, and at least AtLeast.
type Guard struct {
	Per     GuardBy
	Digits  int // with ByPrefix, 1 to MaxGuardDigits; else 0
	Times   int64
	AtLeast int64
	Days    int
	Action  GuardAction
}

// Bounds and defaults of a guard.
const (
	defaultGuardDays   = 7
	defaultGuardDigits = 4
	MaxGuardDays       = 31
	// MaxGuardDigits keeps a part of every number private, and bounds how much is stored.
	MaxGuardDigits = 6
)

var (
	guardBys     = []GuardBy{ByTenant, ByCallingCode, ByPrefix}
	guardActions = []GuardAction{GuardPauses, GuardWarns}
)

func readGuards(v value) []Guard {
	var out []Guard
	for _, item := range v.items() {
		f, ok := item.fields(guardPart)
		if !ok {
			continue
		}
		g := Guard{Days: defaultGuardDays, Action: GuardPauses}
		if per, ok := f.need("per", "per: calling_code"); ok {
			g.Per, _ = wordOf(per, "per", guardBys)
		}
		if digits, ok := f.get("digits"); ok {
			g.Digits = int(digits.integer(1, MaxGuardDigits))
			if g.Per != ByPrefix {
				digits.fail("only a guard per prefix has digits; remove it")
			}
		} else if g.Per == ByPrefix {
			g.Digits = defaultGuardDigits
		}
		if times, ok := f.need("times", "times: 5"); ok {
			g.Times = times.integer(1, 1000)
		}
		if least, ok := f.need("at_least", "at_least: 200"); ok {
			g.AtLeast = least.integer(1, 1_000_000_000)
		}
		if days, ok := f.get("days"); ok {
			n := days.integer(1, MaxGuardDays)
			g.Days = int(n)
		}
		if action, ok := f.get("action"); ok {
			g.Action, _ = wordOf(action, "action", guardActions)
		}
		if slices.ContainsFunc(out, func(o Guard) bool {
			return o.Per == g.Per && o.Action == g.Action
		}) {
			item.fail("there is already a guard per %s that would %s; keep one", g.Per, g.Action)
			continue
		}
		out = append(out, g)
	}
	return out
}

func pathsOfGuards(p paths, guards []Guard) {
	for _, g := range guards {
		at := p.below(string(g.Per), string(g.Action))
		if g.Digits > 0 {
			at.below("digits").setDefault(fmt.Sprint(g.Digits), fmt.Sprint(defaultGuardDigits))
		}
		at.below("times").set(number(g.Times))
		at.below("at_least").set(number(g.AtLeast))
		at.below("days").setDefault(fmt.Sprint(g.Days), fmt.Sprint(defaultGuardDays))
	}
}
