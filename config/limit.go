package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/admission"
)

// maxUnits bounds the max of a limit that counts messages or segments.
const maxUnits = math.MaxInt32 * 1000

// limitContext is what the limits of one list apply to.
type limitContext struct {
	channel  *Channel  // nil for limits over all channels
	channels []Channel // all channels, for limits over all
	isLane   nameCheck
}

// readLimits reads the limits of a channel, or those over all channels. The burst of a sliding
// limit that states none stays 0 until settleBursts.
func readLimits(v value, in limitContext) []admission.Limit {
	var out []admission.Limit
	taken := map[admission.Key]bool{}
	for _, item := range v.items() {
		f, ok := item.fields(limitPart)
		if !ok {
			continue
		}
		l, ok := in.read(f)
		if !ok {
			continue
		}
		if taken[l.Key()] {
			item.fail("there is already a limit of %s; keep the lower one", limitWords(l.Key()))
			continue
		}
		taken[l.Key()] = true
		out = append(out, l)
	}
	return out
}

// read reads one limit and reports whether all of it could be read.
func (lc *limitContext) read(f fields) (l admission.Limit, ok bool) {
	window, hasWindow := f.need("window", "window: 1s")
	if !hasWindow {
		return l, false
	}
	before := len(f.of.r.problems)
	l.Window = readWindow(window)
	if unit, has := f.get("unit"); has {
		l.Unit = readUnit(unit)
	}
	if !readMax(f, &l) {
		return l, false
	}
	l.Scope = lc.scope(f)
	l.Currency = lc.currency(f, &l)
	readSliding(f, &l)
	if reserve, has := f.get("reserve"); has {
		l.Reserve = lc.reserve(reserve)
		if l.Sliding {
			reserve.fail("a sliding limit cannot keep a reserve, because any lane may take its " +
				"burst; remove reserve here, and write it on a limit of another window that " +
				"does not slide, beside this one")
		}
	}
	return l, len(f.of.r.problems) == before
}

// readMax reads how much a window may take. A prepaid budget has no max: it takes what is topped
// up.
func readMax(f fields, l *admission.Limit) bool {
	if l.Window != admission.Prepaid {
		most, has := f.need("max", "max: 100")
		if has && l.Unit == admission.Money {
			l.Max, _ = most.micros(maxBudget)
		} else if has {
			l.Max = most.integer(0, maxUnits)
		}
		return has
	}
	for _, name := range []string{"max", "reserve"} {
		if v, has := f.get(name); has {
			v.fail("a prepaid budget has no %s: it takes what \"dispatcher budget top-up\" adds; "+
				"remove %s", name, name)
		}
	}
	if l.Unit != admission.Money {
		f.of.fail("a prepaid budget is in money, because what is not billed goes back to it; write " +
			"unit: money")
	}
	if prefix, has := f.get("prefix"); has {
		prefix.fail("a prepaid budget is one of a tenant, or of all messages of a channel; remove " +
			"prefix")
	}
	return true
}

func readWindow(v value) admission.Window {
	s, ok := v.raw("one of 1s, 1m, 1h, 1d, prepaid")
	if !ok {
		return 0
	}
	w, err := ParseWindow(s)
	if err != nil {
		v.fail("%v", err)
	}
	return w
}

// ParseWindow reads a window as documents and flags write it: 1s, 1m, 1h, 1d, prepaid, or the
// length of one of the first four in other units, such as 60s or 24h.
func ParseWindow(text string) (admission.Window, error) {
	w, err := admission.ParseWindow(text)
	if err == nil {
		return w, nil
	}
	if d, other := time.ParseDuration(text); other == nil {
		if w, other := admission.ParseWindow(admission.Window(d).String()); other == nil {
			return w, nil
		}
	}
	return 0, err
}

func readUnit(v value) admission.Unit {
	s, ok := v.raw("messages, segments or money")
	if !ok {
		return admission.Messages
	}
	u, err := admission.ParseUnit(s)
	if err != nil {
		v.fail("%v", err)
	}
	return u
}

// scope reads which messages a limit counts.
func (lc *limitContext) scope(f fields) (s admission.Scope) {
	tenant, hasTenant := f.get("tenant")
	prefix, hasPrefix := f.get("prefix")
	switch {
	case hasTenant && hasPrefix:
		prefix.fail("tenant and prefix exclude each other; write two limits")
	case hasTenant:
		s.Tenant, _ = tenant.text()
	case hasPrefix:
		if text, ok := prefix.text(); ok && checkPrefix(prefix, text) {
			s.Prefix = text
		}
	case lc.channel == nil:
		f.of.fail(`a limit over all channels is one of a tenant or of a prefix; write for ` +
			`example tenant: shop or prefix: "+44", or move it to a channel`)
	}
	return s
}

// currency reads the currency of a limit in money, and reports a channel whose price has another:
// amounts of two currencies cannot be added.
func (lc *limitContext) currency(f fields, l *admission.Limit) string {
	v, has := f.get("currency")
	switch {
	case l.Unit != admission.Money && has:
		v.fail("only limits in money have a currency; remove it or write unit: money")
		return ""
	case l.Unit != admission.Money:
		return ""
	case l.Window == admission.Second:
		f.of.fail("a limit in money has a window of 1m, 1h, 1d or prepaid; write for example window: 1d")
		return ""
	case lc.channel != nil && lc.channel.Price.Currency == "":
		f.of.fail("a limit in money counts prices, and channel %s has none; give it a price",
			lc.channel.Name)
		return ""
	case lc.channel != nil && !has:
		return lc.channel.Price.Currency
	case !has:
		f.of.fail("currency is missing; write for example currency: GBP")
		return ""
	}
	currency := readCurrency(v)
	priced := lc.channels
	if lc.channel != nil {
		priced = []Channel{*lc.channel}
	}
	for i := range priced {
		if c := &priced[i]; c.Price.Currency != "" && c.Price.Currency != currency {
			v.fail("%s differs from %s, in which channel %s has its price; a limit in money "+
				"adds up prices of one currency",
				currency, c.Price.Currency, c.Name)
			break
		}
	}
	return currency
}

// readSliding reads whether a limit slides, and its burst.
func readSliding(f fields, l *admission.Limit) {
	if v, has := f.get("sliding"); has {
		l.Sliding = v.flag()
		if l.Sliding && l.Unit == admission.Money {
			v.fail("a limit in money cannot slide, because what was not spent goes back to its " +
				"window; remove sliding")
		}
	}
	burst, has := f.get("burst")
	if !has {
		return
	}
	if !l.Sliding {
		burst.fail("only a sliding limit has a burst; remove it or write sliding: true")
		return
	}
	if l.Burst = burst.integer(1, maxUnits); l.Burst > l.Max && l.Max > 0 {
		burst.fail("a burst of %d is more than the limit takes in a window; write burst: %d or "+
			"less, or leave it out", l.Burst, l.Max)
	}
}

// reserve reads the parts of each window that are kept for lanes, ordered by name.
func (lc *limitContext) reserve(v value) []admission.Reserve {
	entries, _ := v.entries()
	var out []admission.Reserve
	var sum int64
	for _, e := range entries {
		lc.isLane(e.value, e.name)
		s, ok := e.value.raw("a percentage such as 20%")
		if !ok {
			continue
		}
		digits, percent := strings.CutSuffix(s, "%")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !percent || err != nil || n < 1 || n > 100 {
			e.value.fail("%q is not a whole percentage from 1%% to 100%%; write for example 20%%",
				s)
			continue
		}
		sum += n
		out = append(out, admission.Reserve{Lane: e.name, Percent: n})
	}
	if sum > 100 {
		v.fail("keeps %d%% of the window; the lanes together may have 100%% at most", sum)
	}
	slices.SortFunc(out, func(a, b admission.Reserve) int { return cmp.Compare(a.Lane, b.Lane) })
	return out
}

// limitWords names a limit in error messages: "messages per 1s of tenant shop".
func limitWords(k admission.Key) string {
	return fmt.Sprintf("%s per %s%s", k.Unit, k.Window, ofScope(k.Scope))
}

// ofScope says whose messages a limit counts; empty for a limit that counts all.
func ofScope(s admission.Scope) string {
	switch {
	case s.Each():
		return " of each tenant"
	case s.Tenant != "":
		return " of tenant " + plain(s.Tenant)
	case s.Prefix != "":
		return " to " + s.Prefix
	}
	return ""
}

// ParseMax reads the max of a limit as a document writes it. For money that is a decimal in whole
// units of the currency; the result is in micros.
func ParseMax(text string, unit admission.Unit) (int64, error) {
	if unit == admission.Money {
		m, err := parseMicros(text, maxBudget)
		if err != nil {
			return 0, fmt.Errorf("%q %w; write an amount such as 250.00", text, err)
		}
		return m, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxUnits {
		return 0, fmt.Errorf("%q is not a whole number from 0 to %d", text, int64(maxUnits))
	}
	return n, nil
}

// CheckPrefix says what is wrong with a prefix of numbers; nil when nothing is. As in checkPrefix,
// the error does not repeat the text.
func CheckPrefix(text string) error {
	if IsPrefix(text) {
		return nil
	}
	return errors.New("it does not begin a number; write a plus and digits, such as +44")
}
