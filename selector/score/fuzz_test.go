package score_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// bound is far above the time of any accepted expression (about 0.1 ms at the limits), so that a
// busy machine under the race detector passes. An operator would not notice it.
const bound = 2 * time.Second

// worst returns an input whose labels are as long as an envelope allows.
func worst() *score.Input {
	in := sample()
	// Upper case takes more bytes than lower case.
	in.Labels["x"] = selector.TextValue(strings.Repeat("\u0250", 256))
	in.ChannelLabels["x"] = in.Labels["x"]
	return in
}

// compileAndScore fails the test if an expression takes longer than the bound, or breaks a promise
// of Compile and Score. It reports whether the expression was accepted.
func compileAndScore(t interface{ Fatalf(string, ...any) }, source string) bool {
	start := time.Now()
	e, err := score.Compile(source)
	if d := time.Since(start); d > bound {
		t.Fatalf("compiling took %v: %q", d, source)
	}
	if err != nil {
		bad, ok := errors.AsType[*score.SyntaxError](err)
		if !ok || bad.Line < 1 || bad.Column < 1 || bad.Message == "" ||
			strings.Contains(bad.Message, "goroutine") {
			t.Fatalf("%q: error %#v", source, err)
		}
		return false
	}
	if utf8.RuneCountInString(source) > 1000 {
		t.Fatalf("%d characters were accepted", utf8.RuneCountInString(source))
	}
	for _, in := range []*score.Input{sample(), {}, worst()} {
		start := time.Now()
		got, err := e.Score(in)
		if d := time.Since(start); d > bound {
			t.Fatalf("scoring took %v: %q", d, source)
		}
		if err == nil && (math.IsNaN(got) || math.IsInf(got, 0)) {
			t.Fatalf("%q scored %v", source, got)
		}
		again, errAgain := e.Score(in)
		if got != again || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q scored %v, %v and then %v, %v", source, got, err, again, errAgain)
		}
	}
	return true
}

// nested repeats a text around a core.
func nested(before, core, after string, times int) string {
	return strings.Repeat(before, times) + core + strings.Repeat(after, times)
}

// TestDoublingExpressionsAreCutShort tries shapes whose naive cost doubles with each level: shared
// operands of chained comparisons and of ?:, texts joined with themselves, deep nesting. Each grows
// up to the limits of length and of parts.
func TestDoublingExpressionsAreCutShort(t *testing.T) {
	t.Parallel()
	for _, shape := range [][4]string{
		{"0<(", "1", ")<0", ""},
		{"1<(2<", "1", "<3)<4", ""},
		{"(", "price", "?:1)", ""},
		{"(1 ?: ", "price", ")", ""},
		{"(", "1", ")", ""},
		{"-", "1", "", ""},
		{"!", "true", "", "?1:0"},
		{"[", "1", "]", ""},
		{"upper(", "labels.x", ")", `=="a"?1:0`},
		{"", "labels.x", "+labels.x", `=="a"?1:0`},
		{"if true {", "1", "} else {2}", ""},
		{"true?", "1", ":2", ""},
		{"let a=a+a;", "a", "", ""},
		{"max(1,", "1", ")", ""},
		{"9**", "9", "", ""},
	} {
		for _, times := range []int{1, 10, 15, 20, 25, 30, 40, 60, 90, 190, 400} {
			compileAndScore(t, nested(shape[0], shape[1], shape[2], times)+shape[3])
		}
	}
}

// expressions draws texts that look like scoring expressions, most of them valid.
var expressions = rapid.OneOf(rapid.Custom(numeric), rapid.Custom(tokens))

// numeric draws a formula of bounded depth.
func numeric(t *rapid.T) string {
	leaf := rapid.SampledFrom([]string{
		"1", "0", "2.5", "load_ratio", "price", "priority", "labels.size", "labels.x", "labels.none",
		"(labels.none ?? 0)",
		"channel.labels.quality", "len(channel.name)", `(lane in ["otp", labels.x] ? 1 : 0)`,
	})
	var draw func(depth int) string
	draw = func(depth int) string {
		if depth == 0 {
			return leaf.Draw(t, "leaf")
		}
		shape := rapid.SampledFrom([]string{
			"A + B", "A - B", "A * B", "A / B", "A % B", "A ** B", "max(A, B)", "min(A, B)", "abs(A)",
			"round(A)", "A > B ? A : B", "A == B ? 1 : A", "(A ?? B)",
		}).Draw(t, "shape")
		return "(" + strings.NewReplacer("A", draw(depth-1), "B", draw(depth-1)).Replace(shape) + ")"
	}
	return draw(rapid.IntRange(0, 3).Draw(t, "depth"))
}

// tokens draws words of the language in any order.
func tokens(t *rapid.T) string {
	words := rapid.SampledFrom([]string{
		"(", ")", "[", "]", "{", "}", "?", ":", "?:", "??", "?.", ".", "..", ",", ";", "|", "#", "+", "-",
		"*", "**", "/", "%", "^", "<", "<=", "==", "!=", "!", "not",
		"in", "and", "or", "if", "else", "let", "nil", "true", "1", "2.5", `"a"`, "b'x'", "labels",
		"labels.x", "channel", "channel.name", "lane", "price", "abs(", "max(", "map(", "$env", "\n",
	})
	return strings.Join(rapid.SliceOfN(words, 0, 25).Draw(t, "words"),
		rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
}

func TestNoAcceptedExpressionRunsLongerThanTheBound(t *testing.T) {
	t.Parallel()
	accepted := 0
	tier.Check(t, func(t *rapid.T) {
		if compileAndScore(t, expressions.Draw(t, "expression")) {
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("no expression was accepted: the test checks nothing")
	}
}

func FuzzCompile(f *testing.F) {
	for _, source := range []string{
		"", "1 - load_ratio", "(channel.labels.quality ?? 0) / 10 - load_ratio",
		`labels["a-b"] in ["x", 2] ? 1 : 0`,
		"if price > 1 { 0 } else { 1 }", "1 < 2 < 3", "a ?: b", "map(1..9, #)", "labels?.x",
		"0x1F + 1_000 | abs()", "\"\\u00e9\" + 'x'", "// c\n1", "b'\\x00'",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) { compileAndScore(t, source) })
}
