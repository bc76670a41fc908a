package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEachLineNumbersWhatIsThere(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxLine+7)
	for name, tc := range map[string]struct{ in, want string }{
		"empty":            {"", ""},
		"blank lines":      {"a\n\n \r\nb", "1a 4b "},
		"ends with a line": {"a\nb\n", "1a 2b "},
		"dos":              {"a\r\nb\r\n", "1a 2b "},
		"too long":         {"a\n" + long + "\nb", "1a 2" + long[:maxLine] + " 3b "},
		"exactly a buffer": {long[:maxLine-1] + "\nb", "1" + long[:maxLine-1] + " 2b "},
		"too long at end":  {long, "1" + long[:maxLine] + " "},
	} {
		var got bytes.Buffer
		err := eachLine(strings.NewReader(tc.in), func(number int, line []byte) error {
			got.WriteString(string(rune('0'+number)) + string(line) + " ")
			return nil
		})
		if err != nil || got.String() != tc.want {
			t.Errorf("%s: %d bytes, %v; want %d", name, got.Len(), err, len(tc.want))
		}
	}
}

func TestEachLineReportsABrokenInput(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	err := eachLine(iotest.ErrReader(broken), func(int, []byte) error { return nil })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestLinesOfACellStayLines(t *testing.T) {
	t.Parallel()
	got, want := wrapLines("token_file: a b\nfrom: c", 11), "token_file:\na b\nfrom: c"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
