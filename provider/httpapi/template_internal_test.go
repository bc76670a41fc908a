package httpapi

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

// FuzzTemplates reads any text as a template. It is refused, or filling it in gives the text back.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{
		"{to}", "{{", "}}", "{", "}", "{secret:a}", "{secret:}", "{secret:{}", "{secret}", "{to:a}",
		"a{{b}}{text}c", "{}", "{{{to}}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text, anywhere)
		if err != nil {
			return
		}
		back, _ := parsed.expand(func(p part) string {
			if p.arg != "" {
				return "\x00" + p.name + ":" + p.arg + "\x01"
			}
			return "\x00" + p.name + "\x01"
		}, nil)
		back = strings.NewReplacer("{", "{{", "}", "}}").Replace(back)
		back = strings.NewReplacer("\x00", "{", "\x01", "}").Replace(back)
		if !strings.ContainsAny(text, "\x00\x01") && back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	})
}

// TestValuesAreNeverReadAsTemplates fills in values that contain braces and placeholders.
func TestValuesAreNeverReadAsTemplates(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[{}a-z:%&]{1,20}`).Draw(t, "value")
		parsed, err := parseTemplate("<{text}|{{}}|{text}>", anywhere)
		if err != nil {
			t.Fatal(err)
		}
		got, complete := parsed.expand(func(part) string { return value }, nil)
		if want := "<" + value + "|{}|" + value + ">"; got != want || !complete {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
