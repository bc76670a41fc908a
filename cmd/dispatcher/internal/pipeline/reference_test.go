package pipeline

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

func references(t *testing.T, keys ...byte) *References {
	t.Helper()
	list := make([]selector.Key, len(keys))
	for i, k := range keys {
		list[i] = selector.Key{k}
	}
	r, err := NewReferences(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReferencesOpenWhatTheyMade(t *testing.T) {
	t.Parallel()
	before, after := references(t, 1), references(t, 2, 1)
	tier.Check(t, func(t *rapid.T) {
		seq, attempt := rapid.Int64Range(1, math.MaxInt64).Draw(t, "seq"),
			rapid.IntRange(1, math.MaxInt16).Draw(t, "attempt")
		for _, made := range []string{before.Key(seq, attempt), after.Key(seq, attempt)} {
			if gotSeq, gotAttempt, ok := after.Open(made); !ok || gotSeq != seq ||
				gotAttempt != attempt {
				t.Fatalf("%s opens as %d/%d %t, want %d/%d", made, gotSeq, gotAttempt, ok,
					seq, attempt)
			}
		}
		if _, _, ok := before.Open(after.Key(seq, attempt)); ok {
			t.Fatal("a reference was accepted under another key")
		}
	})
}

func TestForgedReferencesAreRefused(t *testing.T) {
	t.Parallel()
	r := references(t, 1)
	made := r.Key(7, 1)
	for _, text := range []string{
		"", made[:31], made + "0", strings.Repeat("0", 32), strings.Repeat("g", 32),
		strings.Repeat("f", 32),
		flip(made, 0), flip(made, 31),
	} {
		if seq, attempt, ok := r.Open(text); ok {
			t.Errorf("%q opened as %d/%d", text, seq, attempt)
		}
	}
	if upper, _, ok := r.Open(strings.ToUpper(made)); !ok || upper != 7 {
		t.Error("a reference in capital letters was not accepted")
	}
}

// flip changes one digit.
func flip(text string, at int) string {
	digit := byte('0')
	if text[at] == digit {
		digit = '1'
	}
	return text[:at] + string(digit) + text[at+1:]
}

func BenchmarkReference(b *testing.B) {
	r, err := NewReferences([]selector.Key{{1}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := r.Open(r.Key(7, 1)); !ok {
			b.Fatal("the reference was not accepted")
		}
	}
}
