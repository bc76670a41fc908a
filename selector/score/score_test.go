package score_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"dispatcher/selector"
	"dispatcher/selector/score"
)

// sample returns a message in English for a channel of quality 8 and load 1/4.
func sample() *score.Input {
	return &score.Input{
		Labels: map[string]selector.Value{
			"language": selector.TextValue("en"), "size": selector.NumberValue(3),
			"a-b": selector.NumberValue(7),
		},
		Lane:     "otp",
		Priority: 2,
		Channel:  "alpha",
		ChannelLabels: map[string]selector.Value{
			"language": selector.TextValue("en"), "quality": selector.NumberValue(8),
			"name": selector.TextValue("x"), "digits": selector.TextValue("12"),
		},
		LoadRatio: 0.25,
		Price:     0.04,
	}
}

func mustCompile(t testing.TB, source string) *score.Expression {
	t.Helper()
	e, err := score.Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return e
}

func TestScoreIsWhatTheFormulaSays(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]float64{
		"5":                              5,
		"-1.5":                           -1.5,
		"7 / 2":                          3.5,
		"2 ** 10 + 7 % 4":                1027,
		"load_ratio":                     0.25,
		"1 - load_ratio * 2":             0.5,
		"price * 100":                    4,
		"priority + 1":                   3,
		"labels.size * 2":                6,
		`labels["a-b"] + labels["size"]`: 10,
		"channel.labels.quality / 10":    0.8,
		`channel["labels"]["quality"]`:   8,
		"labels.language == channel.labels.language ? 1 : 0.2": 1,
		`if lane == "otp" { 1 - load_ratio } else { -price }`:  0.75,
		"labels.none ?? 4":                                                4,
		"labels.none == nil ? 1 : 2":                                      1,
		"labels.size != nil ? 1 : 2":                                      1,
		`channel.labels.name == "x" ? 1 : 0`:                              1,
		`channel.name == "alpha" ? 1 : 0`:                                 1,
		`lane in ["otp", "bulk"] ? 1 : 0`:                                 1,
		`lane not in ["otp", "bulk"] ? 1 : 0`:                             0,
		`labels.none in ["a", "b"] ? 1 : 0`:                               0,
		`labels.size in [1, 2.5, 3] ? 1 : 0`:                              1,
		`labels.size in ["a", 3] ? 1 : 0`:                                 1,
		`labels.size == "3" ? 1 : 0`:                                      0,
		`labels.language startsWith "e" ? 1: 0`:                           1,
		`"Z" in [upper("z")] and not (channel.name contains "q") ? 2 : 1`: 2,
		"max(labels.size, channel.labels.quality, 1) - min(4, 2)":         6,
		"abs(-3) + ceil(0.2) + floor(1.8) + round(2.5)":                   8,
		"len(labels.language) + int(2.9) + float(channel.labels.digits)":  16,
		`lower("ABC") == "abc" && true ? 1 : 0`:                           1,
		"0.5 | round()":                                                   1,
		"// why\n1 + /* two */ 2":                                         3,
		"(labels.size > 2) && (labels.size < 5) || false ? 9 : 8":         9,
	} {
		got, err := mustCompile(t, source).Score(sample())
		if err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, %v; want %v", source, got, err, want)
		}
	}
}

func TestCompileRefusesWithPositionAndReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		source       string
		line, column int
		want         string
	}{
		{"", 1, 1, "empty"},
		{" \n\t", 1, 1, "empty"},
		{"1 +", 1, 3, "ends too early"},
		{"1 +\n  * 2", 2, 3, "unexpected token"},
		{"price\n + prize", 2, 4, "unknown name"},
		{"load_ratio + foo(1)", 1, 14, "may call abs, ceil"},
		{"labels", 1, 1, "name one label"},
		{"channel", 1, 1, "channel.name or channel.labels.NAME"},
		{"1 + channel.labels", 1, 13, "name one label"},
		{"channel.price", 1, 9, "unknown name"},
		{"labels[lane]", 1, 7, "unknown name"},
		{"labels?.x", 1, 9, "not needed"},
		{"labels.x.y", 1, 10, "unknown name"},
		{"$env", 1, 1, "unknown name"},
		{`$env["lane"]`, 1, 5, "unknown name"},
		{"sum(1..1000000)", 1, 1, "may call abs"},
		{"len(1..1000000)", 1, 6, ".. is not allowed"},
		{"map([1], # * 2)", 1, 1, "may call abs"},
		{"[1, 2] | filter(# > 1) | len()", 1, 10, "may call abs"},
		{"reduce([1], #acc + #)", 1, 1, "may call abs"},
		{`repeat("a", 1000000)`, 1, 1, "may call abs"},
		{"now().Unix()", 1, 7, "may call abs"},
		{`lane.Len()`, 1, 6, "may call abs"},
		{`lane matches "o.*" ? 1 : 0`, 1, 6, "matches is not allowed"},
		{"let a = 1; a", 1, 5, "one formula"},
		{"1; 2", 1, 1, "one formula"},
		{"max([1, 2])", 1, 5, "right of in"},
		{`{"a": 1}`, 1, 1, "not allowed"},
		{"lane[0:1]", 1, 5, "not allowed"},
		{`"x" in labels ? 1 : 0`, 1, 5, "needs a list"},
		{"0 < load_ratio < 1 ? 1 : 0", 1, 5, "cannot be chained"},
		{"labels.x ?: 1", 1, 8, "a ?? b"},
		{"price > 1", 1, 1, "CONDITION ? 1 : 0"},
		{"lane", 1, 1, "is a text"},
		{"nil", 1, 1, "is nil"},
		{"lane + 1", 1, 6, "mismatched types"},
		{"price ? 1 : 2", 1, 1, "bool"},
		{"abs()", 1, 1, "arguments"},
		{`abs("x")`, 1, 1, "abs"},
		{"int()", 1, 1, "arguments"},
		{"len(1, 2)", 1, 1, "arguments"},
		{"len(price)", 1, 5, "float64"},
		{"1 + lane % 2", 1, 5, "string"},
		{"remainder(1, 2)", 1, 1, "may call abs"},
		{"1.8.2", 1, 4, "unexpected token"},
		{"99999999999999999999", 1, 20, "too large"},
		{"\xff", 1, 1, "UTF-8"},
		{strings.Repeat("1", 1001), 1, 1, "longer than 1000 characters"},
		{strings.Repeat("1+", 300) + "1", 1, 202, "more than 200"},
		{`"é" == "è" ? oops : 1`, 1, 14, "unknown name"},
	} {
		e, err := score.Compile(tc.source)
		bad, ok := errors.AsType[*score.SyntaxError](err)
		if !ok || e != nil {
			t.Errorf("%q was accepted or failed with another error: %v", tc.source, err)
			continue
		}
		if bad.Line != tc.line || bad.Column != tc.column || !strings.Contains(bad.Error(), tc.want) {
			t.Errorf("%.40q: %v; want line %d, column %d with %q", tc.source, bad, tc.line, tc.column,
				tc.want)
		}
	}
}

func TestScoreRefusesWhatIsNoFiniteNumber(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"1 / 0":                              "not finite",
		"0 / 0":                              "not finite",
		"-1 / (labels.size - 3)":             "not finite",
		"(-1) ** 0.5":                        "not finite",
		"10 ** 400":                          "not finite",
		"labels.language":                    "not a number",
		"labels.none":                        "not a number",
		"labels.size > 1 ? labels.none : 1":  "not a number",
		"labels.none + 1":                    "line 1, column 13: a value is missing",
		"1 +\n labels.language * 2":          "line 2, column 18: a value is missing",
		"labels.language > 2 ? 1 : 0":        "a value is missing",
		"labels.size ? 1 : 0":                "a value is missing",
		"priority % (priority - 2)":          "a value is missing",
		"len(labels.size)":                   "a value is missing",
		"float(labels.language)":             "a value is missing",
		"upper(labels.none) == lane ? 1 : 0": "a value is missing",
		"int(1e300)":                         "a value is missing",
		"int(-1e300)":                        "a value is missing",
		"int(9007199254740994)":              "a value is missing",
		"int(1 / 0)":                         "a value is missing",
		"int(0 / 0)":                         "a value is missing",
		`int("9007199254740994")`:            "a value is missing",
		`int("99999999999999999999")`:        "a value is missing",
		`int("2.5")`:                         "a value is missing",
		"7 % 0":                              "a value is missing",
		"labels.language % 2":                "a value is missing",
		"9e307 * 9e307":                      "not finite",
		"9223372036854775807 ** 20":          "not finite",
	} {
		got, err := mustCompile(t, source).Score(sample())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", source, got, err, want)
		}
	}
}

// TestNumbersDoNotWrapAround uses whole numbers at the limits of 64-bit and 32-bit integers.
func TestNumbersDoNotWrapAround(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]float64{
		"9223372036854775807 + 9223372036854775807":  1 << 64,
		"9223372036854775807 + 1":                    1 << 63,
		"-9223372036854775807 - 9223372036854775807": -(1 << 64),
		"4294967296 * 4294967296":                    1 << 64,
		"9223372036854775807 * priority":             1 << 64,
		"2147483647 + 1":                             1 << 31,
		"-(-9223372036854775807 - 1)":                1 << 63,
		"abs(-9223372036854775807 - 1)":              1 << 63,
		"max(9223372036854775807 + 1, 1)":            1 << 63,
		"len(lane) * 9223372036854775807":            3 * (1 << 63),
		"int(9007199254740992)":                      1 << 53,
		"int(-9007199254740992.0)":                   -(1 << 53),
		`int("9007199254740992")`:                    1 << 53,
		"int(-2.9)":                                  -2,
		"-7 % 4":                                     -3,
		"7 % -4":                                     3,
		"labels.size % 2":                            1,
		"7.5 % 2":                                    1.5,
		"9223372036854775807 % 2":                    0, // the nearest float64 is 2^63
		"priority % 2 == 0 ? 1 : 2":                  1,
		"priority in [1, 2] ? 1 : 0":                 1,
		"len(labels.language) == 2 ? 1 : 0":          1,
	} {
		got, err := mustCompile(t, source).Score(sample())
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", source, got, err, want)
		}
	}
}

func TestErrorsShowNoLabelValue(t *testing.T) {
	t.Parallel()
	in := sample()
	in.Labels["secret"] = selector.TextValue("hunter2")
	for _, source := range []string{
		"int(labels.secret)", "float(labels.secret)", "-labels.secret", "labels.secret + 1",
		"abs(labels.secret)", "labels.secret",
	} {
		if _, err := mustCompile(t, source).Score(in); err == nil ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestAFailedScoreLeavesNoTrace: machines are reused, and one evaluation must not affect the next.
func TestAFailedScoreLeavesNoTrace(t *testing.T) {
	t.Parallel()
	e := mustCompile(t, "1 + (labels.size + 2)")
	empty := &score.Input{}
	for range 100 {
		if got, err := e.Score(sample()); err != nil || got != 6 {
			t.Fatalf("%v, %v", got, err)
		}
		if got, err := e.Score(empty); err == nil {
			t.Fatalf("a missing label was scored %v", got)
		}
	}
}

func TestScoreIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	e := mustCompile(t, `(labels.size ?? 0) + priority + (channel.name in ["alpha"] ? 1 : 0)`)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			in := sample()
			in.Labels["size"] = selector.NumberValue(float64(w))
			for range 2000 {
				if got, err := e.Score(in); err != nil || got != float64(w)+3 {
					t.Errorf("worker %d: %v, %v", w, got, err)
					return
				}
			}
		})
	}
	workers.Wait()
}

func TestExpressionIsWrittenAsItWasRead(t *testing.T) {
	t.Parallel()
	const source = " 1 -  load_ratio // free first"
	if got := mustCompile(t, source).String(); got != source {
		t.Errorf("%q", got)
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, "(channel.labels.quality ?? 0) / 10 - load_ratio")
	}
}

func BenchmarkScore(b *testing.B) {
	for name, source := range map[string]string{
		"load":     "1 - load_ratio",
		"label":    "(channel.labels.quality ?? 0) / 10 - load_ratio",
		"language": "labels.language == channel.labels.language ? 1 : 0.2",
	} {
		b.Run(name, func(b *testing.B) {
			e, in := mustCompile(b, source), sample()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Score(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
