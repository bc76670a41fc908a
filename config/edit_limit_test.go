package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/config/tier"
)

// perSecond is a limit of the channel for each second.
func perSecond(most int64) admission.Limit {
	return admission.Limit{Window: admission.Second, Max: most}
}

// perDay is a limit of a tenant for each day.
func perDay(most int64, tenant string) admission.Limit {
	return admission.Limit{Scope: admission.Scope{Tenant: tenant}, Window: admission.Day, Max: most}
}

func TestSetLimitKeepsCommentsAndOtherLines(t *testing.T) {
	t.Parallel()
	const end = "\nroutes: [{name: r, weights: {a: 1}}]\n"
	for name, c := range map[string]struct {
		doc   string
		limit admission.Limit
		want  string
	}{
		"changed": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 100}] }} # x", perSecond(80),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 80}]}} # x",
		},
		"quoted": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: '100'}]}}", perSecond(0),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: '0'}]}}",
		},
		"equal in other words": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 0100}]}}", perSecond(100),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 0100}]}}",
		},
		"the right one": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 1}, {max: 2, tenant: x, window: " +
				"24h}, {window: 1d, max: 3}]}}", perDay(5, "x"),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 1}, {max: 5, tenant: x, window: " +
				"24h}, {window: 1d, max: 3}]}}",
		},
		"below its burst": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 9, sliding: true, burst: 7}]}}",
			perSecond(3),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 3, sliding: true, burst: 1}]}}",
		},
		"closed with its burst": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 9, sliding: true, burst: 7}]}}",
			perSecond(0),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 0, sliding: true, burst: 7}]}}",
		},
		"opened below its burst": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 0, sliding: true, burst: '7'}]}}",
			perSecond(3),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 3, sliding: true, burst: '1'}]}}",
		},
		"with a burst of its own": {
			"channels: {a: {provider: sandbox, limits: [{window: 1m, max: 9, sliding: true}]}}",
			admission.Limit{Window: admission.Minute, Max: 100},
			"channels: {a: {provider: sandbox, limits: [{window: 1m, max: 100, sliding: true}]}}",
		},
		"added": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 100}]}}", perDay(5, "x"),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 100}, {window: 1d, max: 5, " +
				"tenant: x}]}}",
		},
		"added in block style": {
			"channels:\n  a:\n    provider: sandbox\n    limits:\n    - window: 1s\n" +
				"      max: 100 # agreed\n    test: true", perDay(5, "my shop"),
			"channels:\n  a:\n    provider: sandbox\n    limits:\n    - window: 1s\n" +
				"      max: 100 # agreed\n    - window: 1d\n      max: 5\n      tenant: my shop\n" +
				"    test: true",
		},
		"added on lines": {
			"channels:\n  a:\n    provider: sandbox\n    limits:\n" +
				"      - {window: 1s, max: 100} # agreed\n      # end\n", perDay(5, "x"),
			"channels:\n  a:\n    provider: sandbox\n    limits:\n" +
				"      - {window: 1s, max: 100} # agreed\n      - {window: 1d, max: 5, tenant: x}\n" +
				"      # end\n",
		},
		"added between brackets": {
			"channels: {a: {provider: sandbox, limits: [\n  {window: 1s, max: 100} # agreed\n]}}",
			perDay(5, "x"),
			"channels:\n  a:\n    provider: sandbox\n    limits:\n" +
				"      - {window: 1s, max: 100} # agreed\n      - {window: 1d, max: 5, tenant: x}",
		},
		"added behind a comma": {
			"channels: {a: {provider: sandbox, limits: [\n  {window: 1s, max: 100}, # agreed\n]}}",
			perDay(5, "x"),
			"channels:\n  a:\n    provider: sandbox\n    limits:\n" +
				"      - {window: 1s, max: 100} # agreed\n      - {window: 1d, max: 5, tenant: x}",
		},
		"added behind a nested one": {
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 100, reserve: {otp: 20%, } } ]}}",
			perDay(5, "x"),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 100, reserve: {otp: 20%}}, " +
				"{window: 1d, max: 5, tenant: x}]}}",
		},
		"first of a list": {
			"channels: {a: {provider: sandbox, limits: []}}", perSecond(5),
			"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 5}]}}",
		},
		"first of a bare key": {
			"channels:\n  a:\n    limits: # none\n    provider: sandbox", perSecond(5),
			"channels:\n  a:\n    limits: [{window: 1s, max: 5}] # none\n    provider: sandbox",
		},
		"first of null": {
			"channels: {a: {limits: ~, provider: sandbox}}", perSecond(5),
			"channels: {a: {limits: [{window: 1s, max: 5}], provider: sandbox}}",
		},
		"without a list": {
			"channels:\n  a:\n    provider: sandbox # free\n    test: true", perSecond(5),
			"channels:\n  a:\n    provider: sandbox # free\n    limits: [{window: 1s, max: 5}]\n" +
				"    test: true",
		},
		"without a list, in JSON": {
			`"channels": {"a": {"provider": "sandbox"}}`, perDay(5, "x"),
			`"channels": {"a": {"provider": "sandbox", "limits": [{"window": "1d", "max": 5, "tenant": "x"}]}}`,
		},
		"with everything": {
			"channels: {a: {provider: sandbox, limits: []}}",
			admission.Limit{
				Scope: admission.Scope{Prefix: "+44"}, Window: admission.Minute, Max: 50,
				Unit: admission.Segments, Sliding: true, Burst: 20,
			},
			`channels: {a: {provider: sandbox, limits: [{window: 1m, max: 50, unit: segments, sliding: true, burst: 20, prefix: "+44"}]}}`,
		},
		"with reserves": {
			"channels: {a: {provider: sandbox, limits: []}}",
			admission.Limit{
				Scope: admission.Scope{Prefix: "+44"}, Window: admission.Minute, Max: 50,
				Unit:    admission.Segments,
				Reserve: []admission.Reserve{{Lane: "bulk", Percent: 5}, {Lane: "otp", Percent: 20}},
			},
			`channels: {a: {provider: sandbox, limits: [{window: 1m, max: 50, unit: segments, reserve: {bulk: 5%, otp: 20%}, prefix: "+44"}]}}`,
		},
		"money": {
			`channels: {a: {provider: sandbox, price: {currency: EUR, default: 0.05}, limits: [{window: 1d, max: "250.00", unit: money}]}}`,
			admission.Limit{Window: admission.Day, Max: 99_500_000, Unit: admission.Money},
			`channels: {a: {provider: sandbox, price: {currency: EUR, default: 0.05}, limits: [{window: 1d, max: "99.50", unit: money}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setLimit([]byte(c.doc+end), "a", c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+end, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetLimitOverAllChannelsKeepsTheRest(t *testing.T) {
	t.Parallel()
	const rest = "channels: {a: {provider: sandbox, price: {currency: GBP, default: 0.05}}}\n" +
		"routes: [{name: r, weights: {a: 1}}]"
	const added = "limits: [{window: 1d, max: 5, tenant: x}]"
	for name, c := range map[string]struct{ doc, want string }{
		"at the end":      {"# all\n" + rest + "\n", "# all\n" + rest + "\n" + added + "\n"},
		"without a break": {rest, rest + "\n" + added + "\n"},
		"with CRLF": {
			strings.ReplaceAll(rest, "\n", "\r\n"), strings.ReplaceAll(rest+"\n"+added+"\n", "\n", "\r\n"),
		},
		"behind a time zone": {
			"timezone: UTC # agreed\n" + rest, "timezone: UTC # agreed\n" + added + "\n" + rest,
		},
		"to a list": {
			"limits: [{window: 1m, max: 5, tenant: x}]\n" + rest,
			"limits: [{window: 1m, max: 5, tenant: x}, {window: 1d, max: 5, tenant: x}]\n" + rest,
		},
		"in JSON": {
			`{"channels":{"a":{"provider":"sandbox"}},"routes":[{"name":"r","weights":{"a":1}}]}`,
			`{"channels":{"a":{"provider":"sandbox"}},"limits":[{"window":"1d","max":5,"tenant":"x"}],"routes":[{"name":"r","weights":{"a":1}}]}`,
		},
		"in JSON on lines": {
			"{\n  \"channels\": {\"a\": {\"provider\": \"sandbox\"}},\n" +
				"  \"routes\": [{\"name\": \"r\", \"weights\": {\"a\": 1}}]\n}\n",
			indented(`{"channels":{"a":{"provider":"sandbox"}},"limits":[{"window":"1d","max":5,"tenant":"x"}],"routes":[{"name":"r","weights":{"a":1}}]}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setLimit([]byte(c.doc), "", perDay(5, "x"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// indented formats JSON the way most programs write it.
func indented(text string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		panic(err)
	}
	return out.String() + "\n"
}

func TestDropLimitKeepsTheRest(t *testing.T) {
	t.Parallel()
	const end = "\nroutes: [{name: r, weights: {a: 1}}]\n"
	one, two, three := "{window: 1s, max: 1}", "{window: 1d, max: 2, tenant: x}",
		"{window: 1d, max: 3}"
	for name, c := range map[string]struct{ list, want string }{
		"the only one":           {"[" + two + "]", "[]"},
		"the only one, on lines": {"\n      # of x\n      - " + two + " # agreed", "#[]"},
		"the first":              {"[" + two + ", " + one + "]", "[" + one + "]"},
		"the middle": {
			"[" + one + ", " + two + ", " + three + "]", "[" + one + ", " + three + "]",
		},
		"the last":              {"[" + one + ", " + two + " ]", "[" + one + "]"},
		"the last with a comma": {"[" + one + ", " + two + ",]", "[" + one + "]"},
		"on lines": {
			"\n      - " + one + "\n      - " + two + " # agreed\n      - " + three,
			"\n      - " + one + "\n      - " + three,
		},
		"the last on lines": {"\n    - " + one + "\n    - " + two, "\n    - " + one},
		"in block style": {
			"\n      - window: 1d\n        tenant: x\n        max: 2 # agreed\n      # next\n      - " + one,
			"\n      # next\n      - " + one,
		},
		"between brackets": {
			"[\n      " + one + ", # a\n      " + two + ", # b\n      " + three + " # c\n      ]",
			"\n      - " + one + " # a\n      - " + three + " # c",
		},
		"last between brackets": {
			"[\n      " + one + ", # a\n      " + two + " # b\n      ]", "\n      - " + one + " # a",
		},
		"first of two lines": {"[" + two + ",\n      " + one + "]", "\n      - " + one},
		"last of two lines":  {"[" + one + ",\n      " + two + "]", "\n      - " + one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := "channels:\n  a:\n    provider: sandbox\n    limits:"
			if c.list[0] == '[' {
				head += " "
			}
			limit := perDay(0, "x")
			got, err := dropLimit([]byte(head+c.list+end), "a", limit.Key())
			if err != nil {
				t.Fatal(err)
			}
			head = strings.TrimSuffix(head, " ")
			switch c.want[0] {
			case '[':
				head += " "
			case '#':
				head, c.want = "channels:\n  a:\n    provider: sandbox\n    # of x\n    limits: ", "[]"
			}
			if diff := cmp.Diff(head+c.want+end, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimitsThatCannotBeSetSayWhatToDo(t *testing.T) {
	t.Parallel()
	const end = "\nroutes: [{name: r, weights: {a: 1}}]\n"
	const list = "channels: {a: {provider: sandbox, price: {currency: EUR, default: 0.05}, limits: " +
		"[{window: 1s, max: 50, unit: segments}, {window: 1d, max: 9, unit: money}]}}"
	money := admission.Limit{
		Window: admission.Day, Max: 50_000_000, Unit: admission.Money, Currency: "GBP",
	}
	for name, c := range map[string]struct {
		doc, channel string
		limit        admission.Limit
		want         string
	}{
		"unknown channel": {
			list, "b", perSecond(5), `there is no channel "b"; define it under channels`,
		},
		"one segment": {
			list, "a",
			admission.Limit{Window: admission.Minute, Max: 1, Unit: admission.Segments},
			"routing with the change:2: routes[0]: a message of 10 segments would never pass channel a, " +
				"which takes 1 segment per 1m; set max_segments: 1 or raise the limit",
		},
		"below a message": {
			list, "a",
			admission.Limit{Window: admission.Second, Max: 5, Unit: admission.Segments},
			"routing with the change:2: routes[0]: a message of 10 segments would never pass channel a, " +
				"which takes 5 segments per 1s; set max_segments: 5 or raise the limit",
		},
		"another currency": {
			list, "a", money,
			`routing with the change: the limit of money per 1d is in EUR, not in GBP; edit the file and use "dispatcher routing apply"`,
		},
		"no scope at the top": {
			list, "", perSecond(5),
			`routing with the change:3: limits[0]: a limit over all channels is one of a tenant or of a prefix; write for example tenant: shop or prefix: "+44", or move it to a channel`,
		},
		"shared": {
			"channels: {a: {provider: sandbox, limits: &l [{window: 1s, max: 9}]}, b: {provider: sandbox, " +
				"limits: *l}}", "a", perSecond(5),
			`routing with the change: line 1: limits is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"shared max": {
			"channels: {a: {provider: sandbox, capacity: &n 9, limits: [{window: 1s, max: *n}]}}", "a",
			perSecond(5),
			`routing with the change: max is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"shared burst": {
			"channels: {a: {provider: sandbox, capacity: &n 9, limits: [{window: 1s, max: 9, sliding: " +
				"true, burst: *n}]}}", "a", perSecond(5),
			`routing with the change: burst is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setLimit([]byte(c.doc+end), c.channel, c.limit)
			if err == nil {
				t.Fatalf("no error; result\n%s", got)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, err := dropLimit([]byte(list+end), "a", admission.Key{Window: admission.Hour})
	if want := "there is no limit of messages per 1h on channel a; there are segments per 1s; " +
		"money per 1d"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = dropLimit([]byte("channels: {a: {provider: sandbox, admission: even, limits: [{window: "+
		"1s, max: 9}]}}"+end), "a", admission.Key{
		Window: admission.Second,
	})
	if err == nil ||
		!strings.Contains(err.Error(), "policy even divides the limits of the channel, and it has none") {
		t.Errorf("%v", err)
	}
}

// limitList is a layout for a list of limits.
type limitList struct {
	flow, lines, block, comments bool
	dash                         string // before the dashes of the list
	eol                          string
}

// write renders a document whose channel a has these limits. Limits in noted carry a comment.
func (l limitList) write(limits []admission.Limit, noted map[admission.Key]bool) string {
	var doc strings.Builder
	line := func(format string, args ...any) { doc.WriteString(fmt.Sprintf(format, args...) + l.eol) }
	note := func(limit *admission.Limit) string {
		if l.comments && noted[limit.Key()] {
			return " # agreed, {window: 1s, max: 1}]"
		}
		return ""
	}
	text := func(limit *admission.Limit) []string {
		pairs := []string{"window: " + limit.Window.String(), fmt.Sprintf("max: %d", limit.Max)}
		if limit.Unit != admission.Messages {
			pairs = append(pairs, "unit: "+limit.Unit.String())
		}
		if limit.Sliding {
			pairs = append(pairs, fmt.Sprintf("burst: %d", limit.Burst), "sliding: true")
		}
		if limit.Scope.Tenant != "" {
			pairs = append(pairs, "tenant: "+limit.Scope.Tenant)
		}
		return pairs
	}
	line("channels:")
	line("  a:")
	line("    provider: sandbox")
	switch {
	case len(limits) == 0:
		line("    limits: []")
	case l.flow && l.lines:
		line("    limits: [")
		for i := range limits {
			comma := ","
			if i == len(limits)-1 {
				comma = ""
			}
			line("      {%s}%s%s", strings.Join(text(&limits[i]), ", "), comma, note(&limits[i]))
		}
		line("    ]")
	case l.flow:
		all := make([]string, len(limits))
		for i := range limits {
			all[i] = "{" + strings.Join(text(&limits[i]), ", ") + "}"
		}
		line("    limits: [%s]", strings.Join(all, ", "))
	default:
		line("    limits:")
		for i := range limits {
			if l.block {
				line("%s- %s%s", l.dash, strings.Join(text(&limits[i]), l.eol+l.dash+"  "), note(&limits[i]))
			} else {
				line("%s- {%s}%s", l.dash, strings.Join(text(&limits[i]), ", "), note(&limits[i]))
			}
		}
	}
	line("    test: true")
	line("routes: [{name: r, weights: {a: 1}}]")
	return doc.String()
}

// fitting returns a limit's burst, or the default if its max is now below that burst.
func fitting(l *admission.Limit) int64 {
	if l.Burst <= l.Max {
		return l.Burst
	}
	least := int64(1)
	if l.Unit == admission.Segments {
		least = 10
	}
	if l.Window == admission.Second {
		return least
	}
	return max(least, l.Max/10)
}

// An edit rewrites the entry of the limits and keeps its layout, comments and order. All other
// lines stay the same.
func TestEditedLimitsAreThoseOfAFreshDocument(t *testing.T) {
	t.Parallel()
	var keys []admission.Key
	for _, w := range []admission.Window{admission.Second, admission.Minute, admission.Day} {
		for _, tenant := range []string{"", "shop"} {
			keys = append(keys, admission.Key{Window: w, Scope: admission.Scope{Tenant: tenant}},
				admission.Key{Window: w, Scope: admission.Scope{Tenant: tenant}, Unit: admission.Segments})
		}
	}
	tier.Check(t, func(t *rapid.T) {
		l := limitList{
			flow: rapid.Bool().Draw(t, "flow"), lines: rapid.Bool().Draw(t, "lines"),
			block:    rapid.Bool().Draw(t, "block"),
			comments: rapid.Bool().Draw(t, "comments"),
			dash:     rapid.SampledFrom([]string{"    ", "      "}).Draw(t, "dashes"),
			eol:      rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line break"),
		}
		most := rapid.Int64Range(10, 100_000)
		all := rapid.Permutation(keys).Draw(t, "keys")
		var limits []admission.Limit
		noted := map[admission.Key]bool{}
		for _, key := range all[:rapid.IntRange(2, len(all)-1).Draw(t, "limits")] {
			limit := admission.Limit{
				Scope: key.Scope, Window: key.Window, Unit: key.Unit, Max: most.Draw(t, "max"),
			}
			if limit.Sliding = rapid.Bool().Draw(t, "sliding"); limit.Sliding {
				limit.Burst = rapid.Int64Range(10, limit.Max).Draw(t, "burst")
			}
			limits = append(limits, limit)
			noted[key] = true
		}
		before := l.write(limits, noted)
		at := rapid.IntRange(0, len(limits)).Draw(t, "which")
		var got []byte
		var err error
		switch {
		case at == len(limits):
			key := all[len(limits)]
			limits = append(limits,
				admission.Limit{
					Scope: key.Scope, Window: key.Window, Unit: key.Unit, Max: most.Draw(t, "added"),
				})
			got, err = setLimit([]byte(before), "a", limits[at])
		case rapid.Bool().Draw(t, "drop"):
			got, err = dropLimit([]byte(before), "a", limits[at].Key())
			limits = append(limits[:at:at], limits[at+1:]...)
		default:
			limits[at].Max = most.Draw(t, "changed")
			got, err = setLimit([]byte(before), "a", limits[at])
			limits[at].Burst = fitting(&limits[at])
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		if string(got) == before {
			return // the max does not change
		}
		if l.flow && l.lines { // the edit rewrote the entry in block style
			l.flow, l.block, l.dash = false, false, "      "
		}
		if diff := cmp.Diff(l.write(limits, noted), string(got)); diff != "" {
			t.Fatalf("%s\nbefore:\n%s", diff, before)
		}
	})
}

// In a document of any layout, an edit that succeeds yields the limits asked for, and JSON remains
// JSON.
func FuzzSetLimit(f *testing.F) {
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, uint8(0), uint8(0), int64(7), "")
	f.Add(example, uint8(9), uint8(3), int64(7), "shop")
	f.Add([]byte(`{"channels":{"a":{"provider":"sandbox","limits":[{"window":"1s","max":5}]}},"routes":[{"name":"r","weights":{"a":1}}]}`), uint8(0), uint8(1), int64(3), "x \x01\"y")
	f.Add([]byte(three+
		"routes:\n- name: r\n  weights: {a: 25}\nlimits:\n- window: 1s\n  max: 3\n  tenant: x\n"+
		"- {window: 1d, max: 3, tenant: x}"), uint8(3), uint8(0), int64(3), "x")
	f.Add([]byte(`{"channels":{"a":{"provider":"sandbox","limits":[{"window":"1s","sliding":true,"burst":"5","max":5}]}},"routes":[{"name":"r","weights":{"a":1}}]}`), uint8(0), uint8(0), int64(3), "")
	f.Fuzz(func(t *testing.T, doc []byte, channel, window uint8, most int64, tenant string) {
		before, err := config.ParseRouting("f", doc)
		if err != nil {
			return
		}
		name := ""
		if i := int(channel); i < len(before.Channels) {
			name = before.Channels[i].Name
		}
		windows := []admission.Window{admission.Second, admission.Minute, admission.Hour, admission.Day}
		limit := admission.Limit{
			Scope: admission.Scope{Tenant: tenant}, Window: windows[int(window)%len(windows)], Max: most,
		}
		got, err := setLimit(doc, name, limit)
		if err != nil {
			return
		}
		if json.Valid(doc) && !json.Valid(got) {
			t.Fatalf("the result is not JSON: %s", got)
		}
		after, err := config.ParseRouting("f", got)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if changes := config.Diff(before, after); len(changes) > 2 {
			t.Errorf("%+v", changes)
		}
		read := after.LimitsOf(name)
		i := indexOf(read, limit.Key())
		if i < 0 || read[i].Max != most {
			t.Fatalf("%+v", read)
		}
		back, err := dropLimit(got, name, limit.Key())
		if err != nil {
			return
		}
		final, err := config.ParseRouting("f", back)
		if err != nil || indexOf(final.LimitsOf(name), limit.Key()) >= 0 {
			t.Fatalf("%v\n%s", err, back)
		}
	})
}

func indexOf(limits []admission.Limit, key admission.Key) int {
	for i := range limits {
		if limits[i].Key() == key {
			return i
		}
	}
	return -1
}
