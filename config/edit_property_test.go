package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// layout is one way to write a document.
type layout struct {
	block, lines, compact bool   // of mappings: block style, or braces over lines, or without spaces
	indent                int    // of block style
	quote, inner          string // around keys, around weights
	eol                   string
	comments              bool
	mark                  string
	rewritten             bool // braces over lines were rewritten in block style
	noted                 int  // how many members have a comment
}

func drawLayout(t *rapid.T) layout {
	l := layout{
		block:    rapid.Bool().Draw(t, "block"),
		indent:   rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "indentation"),
		lines:    rapid.Bool().Draw(t, "lines"),
		quote:    rapid.SampledFrom([]string{"", `"`, "'"}).Draw(t, "quotes of keys"),
		inner:    rapid.SampledFrom([]string{"", `"`, "'"}).Draw(t, "quotes of weights"),
		eol:      rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line break"),
		comments: rapid.Bool().Draw(t, "comments"),
		mark:     rapid.SampledFrom([]string{"", "\uFEFF"}).Draw(t, "byte order mark"),
	}
	l.compact = !l.block && !l.lines && l.quote == `"` && rapid.Bool().Draw(t, "compact")
	return l
}

// write renders a document whose route r has the given members. The comments contain text that the
// editor could mistake for an entry.
func (l layout) write(members []config.Weight, states []config.ChannelState) string {
	key := func(s string) string {
		return l.quote + s + l.quote
	}
	// An added channel is quoted if YAML would read its name as another type.
	member := func(i int, s string) string {
		if i >= l.noted && l.quote == "" && slices.Contains([]string{"true", "1", "null"}, s) {
			return `"` + s + `"`
		}
		return key(s)
	}
	var doc strings.Builder
	line := func(format string, args ...any) { doc.WriteString(fmt.Sprintf(format, args...) + l.eol) }
	note := func(s string) string {
		if l.comments {
			return " # " + s + " a: 1, żółć }"
		}
		return ""
	}
	agreed := func(i int) string {
		if i < l.noted {
			return note("agreed")
		}
		return ""
	}
	doc.WriteString(l.mark)
	line("%s: # all of them", key("channels"))
	for i, s := range states {
		line("  %s: {%s: sandbox, %s: %s}", key(channelName(i)), key("provider"), key("state"), s)
	}
	line("%s:%s", key("routes"), note("by order"))
	line("- {%s: q, %s: {labels: {żółć: '日本'}}, %s: {%s: 1}}", key("name"), key("match"),
		key("weights"), key("a"))
	line("- %s: r%s", key("name"), note("the one"))
	switch {
	case l.block:
		if l.rewritten {
			line("  %s:", key("weights"))
		} else {
			line("  %s:%s", key("weights"), note("in percent"))
		}
		for i, m := range members {
			line("  %s%s: %s%s", strings.Repeat(" ", l.indent), member(i, m.Channel),
				l.inner+m.Weight.String()+l.inner, agreed(i))
		}
	case l.lines:
		line("  %s: {", key("weights"))
		for i, m := range members {
			comma := ","
			if i == len(members)-1 {
				comma = ""
			}
			line("    %s: %s%s%s", member(i, m.Channel), l.inner+m.Weight.String()+l.inner, comma, agreed(i))
		}
		line("  }")
	default:
		space := " "
		if l.compact {
			space = ""
		}
		var entries []string
		for i, m := range members {
			entries = append(entries, member(i, m.Channel)+":"+space+l.inner+m.Weight.String()+l.inner)
		}
		line("  %s: {%s}%s", key("weights"), strings.Join(entries, ","+space), note("in percent"))
	}
	line("  %s: 3%s", key("max_segments"), note("short"))
	return doc.String()
}

// after is the layout of a rewritten entry: on one line or in block style, with single spaces.
func (l layout) after() layout {
	l.compact = false
	if l.lines && !l.block {
		l.block, l.indent, l.rewritten = true, 2, true
	}
	return l
}

func channelName(i int) string {
	return []string{"a", "b-2", "true", "1", "null", "Z_9", "-x", ".."}[i]
}

// An edit rewrites the entry of the weights and keeps its layout, comments, order and quotes. All
// other lines stay the same.
func TestEditedWeightsAreThoseOfAFreshDocument(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		weight := rapid.Custom(func(t *rapid.T) selector.Weight {
			return selector.MustWeight(rapid.StringMatching(`[1-9][0-9]{0,3}(\.[0-9]{0,3}[1-9])?`).Draw(t,
				"weight"))
		})
		all := slices.Repeat([]config.ChannelState{config.Enabled}, 8)
		count := rapid.IntRange(1, len(all)).Draw(t, "members")
		var old, want, asked []config.Weight
		for i := range rapid.IntRange(count, len(all)).Draw(t, "members after") {
			w := config.Weight{Channel: channelName(i), Weight: weight.Draw(t, "old")}
			if i < count {
				old = append(old, w)
			}
			if i >= count || rapid.Bool().Draw(t, "changes") {
				w.Weight = weight.Draw(t, "new")
				asked = append(asked, w)
			}
			want = append(want, w)
		}
		l.noted = count // comments stay with their members; a new member has none
		before := l.write(old, all)
		got, err := setWeights([]byte(before), "r", asked)
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		if len(asked) == 0 || slices.Equal(old, want) {
			if before != string(got) {
				t.Fatalf("an edit without a change changed the text: %s", got)
			}
			return
		}
		if diff := cmp.Diff(l.after().write(want, all), string(got)); diff != "" {
			t.Fatalf("%s\nbefore:\n%s", diff, before)
		}
	})
}

func TestEditedStatesAreThoseOfAFreshDocument(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		state := rapid.SampledFrom([]config.ChannelState{config.Enabled, config.Draining, config.Disabled})
		states := rapid.SliceOfN(state, 1, 8).Draw(t, "states")
		i := rapid.IntRange(0, len(states)-1).Draw(t, "channel")
		members := []config.Weight{{Channel: "a", Weight: selector.MustWeight("1")}}
		before := l.write(members, states)
		states[i] = state.Draw(t, "state")
		got, err := setState([]byte(before), channelName(i), states[i])
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		if diff := cmp.Diff(l.write(members, states), string(got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// In a document of any layout, an edit that succeeds yields the routing asked for, and the same
// edit again changes nothing.
func FuzzSetWeights(f *testing.F) {
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, uint8(0), uint8(2), "0.5")
	f.Add([]byte(`{"channels":{"a":{"provider":"sandbox"},"b":{"provider":"sandbox"}},"routes":[{"name":"r","weights":{"a":1}}]}`), uint8(0), uint8(1), "3")
	f.Add([]byte(three+"routes:\n- name: r\n  weights:\n    a: 25 # x\n    b: &b 3\n"), uint8(0),
		uint8(2), "3")
	f.Fuzz(func(t *testing.T, doc []byte, route, channel uint8, text string) {
		before, err := config.ParseRouting("f", doc)
		w, bad := selector.ParseWeight(text)
		if err != nil || bad != nil {
			return
		}
		r := &before.Routes[int(route)%len(before.Routes)]
		name := before.ChannelNames()[int(channel)%len(before.Channels)]
		got, err := setWeights(doc, r.Name, []config.Weight{{Channel: name, Weight: w}})
		if err != nil {
			return
		}
		after, err := config.ParseRouting("f", got)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		setWeight(r, name, w)
		if diff := cmp.Diff(before, after, compare); diff != "" {
			t.Error(diff)
		}
		again, err := setWeights(got, r.Name, []config.Weight{{Channel: name, Weight: w}})
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("the same edit again: %v\n%s", err, again)
		}
		if json.Valid(doc) && !json.Valid(got) {
			t.Errorf("the result is not JSON: %s", got)
		}
	})
}

// setWeight makes the change of an edit on the values instead of the text.
func setWeight(r *config.Route, channel string, w selector.Weight) {
	set := config.Weight{Channel: channel, Weight: w, Configured: w}
	if i := slices.Index(r.Channels, channel); i >= 0 {
		r.Weights[i] = set
		return
	}
	r.Channels, r.Weights = append(r.Channels, channel), append(r.Weights, set)
}

func FuzzSetState(f *testing.F) {
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, uint8(1), "draining")
	f.Add([]byte("channels: {a: {provider: sandbox, state: }}\nroutes: [{name: r, weights: {a: 1}}]"),
		uint8(0), "disabled")
	f.Fuzz(func(t *testing.T, doc []byte, channel uint8, state string) {
		before, err := config.ParseRouting("f", doc)
		if err != nil {
			return
		}
		c := &before.Channels[int(channel)%len(before.Channels)]
		got, err := setState(doc, c.Name, config.ChannelState(state))
		if err != nil {
			return
		}
		after, err := config.ParseRouting("f", got)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if c.State == config.ChannelState(state) && !bytes.Equal(doc, got) {
			t.Error("an edit to the state in force changed the text")
		}
		c.State = config.ChannelState(state)
		if diff := cmp.Diff(before, after, compare); diff != "" {
			t.Error(diff)
		}
	})
}
