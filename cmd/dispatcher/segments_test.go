package main

import (
	"strings"
	"testing"
)

func TestSegmentsAnswersOneObjectPerLine(t *testing.T) {
	t.Parallel()
	in := `{"text":"` + strings.Repeat("x", 161) + `"}` + "\n\n" + `{"text":"日本","id":"7"}` + "\n" +
		`{"text":"€"}`
	got := dispatcher(t, in, nil, "segments")
	want := `{"alphabet":"gsm7","units":161,"segments":2}
{"alphabet":"ucs2","units":2,"segments":1}
{"alphabet":"gsm7","units":2,"segments":1}
`
	if got.code != exitOK || got.out != want {
		t.Errorf("%+v, want %s", got, want)
	}
}

func TestSegmentsOfAnArgument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"plain": {
			[]string{"Your code is 123456"}, `{"alphabet":"gsm7","units":19,"segments":1}`,
		},
		"empty":       {[]string{""}, `{"alphabet":"gsm7","units":0,"segments":1}`},
		"looks alike": {[]string{"it’s"}, `{"alphabet":"ucs2","units":4,"segments":1}`},
		"substituted": {
			[]string{"it’s", "--substitute"},
			`{"alphabet":"gsm7","units":4,"segments":1,"substituted":true}`,
		},
		"national": {
			[]string{
				strings.Repeat("ş", 71), "--locking", "turkish", "--single", "spanish,turkish",
			},
			`{"alphabet":"gsm7","units":71,"segments":1,"locking":"turkish"}`,
		},
		"of all": {
			[]string{strings.Repeat("a", 70) + "Á", "--single", "all"},
			`{"alphabet":"gsm7","units":72,"segments":1,"single":"spanish"}`,
		},
		"not needed": {
			[]string{"ş", "--locking", "all"}, `{"alphabet":"ucs2","units":1,"segments":1}`,
		},
		"pieces": {
			[]string{strings.Repeat("я", 71), "--split"},
			`{"alphabet":"ucs2","units":71,"segments":2,"parts":["` + strings.Repeat("я", 67) +
				`","яяяя"]}`,
		},
		"tables as csv": {
			[]string{strings.Repeat("ş", 71), "--locking", "turkish", "--format", "csv"},
			"alphabet,units,segments,locking,single\ngsm7,71,1,turkish,",
		},
		"both": {
			[]string{
				"İstanbul’da " + strings.Repeat("ş", 70), "--locking", "turkish",
				"--single", "turkish", "--substitute",
			},
			`{"alphabet":"gsm7","units":82,"segments":1,"locking":"turkish","substituted":true}`,
		},
		"16 bits": {
			[]string{strings.Repeat("x", 306), "--reference-16"},
			`{"alphabet":"gsm7","units":306,"segments":3}`,
		},
		"8 bits": {
			[]string{strings.Repeat("x", 306)}, `{"alphabet":"gsm7","units":306,"segments":2}`,
		},
		"sheet as csv": {[]string{"x", "--format", "csv"}, "alphabet,units,segments\ngsm7,1,1"},
	} {
		got := dispatcher(t, "", nil, append([]string{"segments"}, tc.args...)...)
		if got.code != exitOK || strings.TrimSpace(got.out) != tc.want {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

func TestSegmentsNamesTheLineButNotTheText(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`{"text":5}`, `{"text":null}`, `{"txt":"secret"}`, `secret`} {
		got := dispatcher(t, `{"text":"a"}`+"\n"+bad+"\n", nil, "segments")
		if got.code != exitFailed || !strings.Contains(got.err, "line 2") ||
			strings.Contains(got.err, "secret") {
			t.Errorf("%s: got %+v, want exit code %d, %q in the error and no %q in the error",
				bad, got, exitFailed, "line 2", "secret")
		}
		if strings.Count(got.out, "\n") != 1 {
			t.Errorf("answer to the line before: %q", got.out)
		}
	}
}

func TestSegmentsRefusesTablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`--locking: language "klingon" has no tables; use turkish, spanish`: {
			"x", "--locking", "klingon",
		},
		"--locking: spanish has no locking shift table": {
			"x", "--locking", "spanish",
		},
		`--single: language "" has no tables`: {
			"x", "--single", "turkish,",
		},
	} {
		got := dispatcher(t, "", nil, append([]string{"segments"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}
