package app

import (
	"errors"
	"strings"
	"testing"
)

func TestATokenIsOneWordOfAFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		err     error
		token   string
		want    string
	}{
		"a line":      {"s3cret\n", nil, "s3cret", ""},
		"no file":     {"", errors.New("open token: no such file"), "", "scoring.token_file: open token: no such file"},
		"empty":       {" \n", nil, "", "file token is empty"},
		"two words":   {"s3cret other", nil, "", "file token holds more than one word"},
		"a new line":  {"s3cret\r\nX-Injected: 1", nil, "", "file token holds more than one word"},
		"not ASCII":   {"s3crét", nil, "", "file token holds more than one word"},
		"a long file": {strings.Repeat("x", maxToken+1), nil, "", "file token is longer than"},
	} {
		doc := versionOf(t, everyMode, "")
		compiled, err := Compile(doc, 1)
		if err != nil {
			t.Fatal(err)
		}
		troubles := readTokens(doc, compiled, func(string) ([]byte, error) { return []byte(tc.content), tc.err })
		if got := compiled.Routes[3].Scoring.Function.Token; got != tc.token {
			t.Errorf("%s: token %q", name, got)
		}
		switch err := troubles["best"]; {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		case err != nil && strings.Contains(err.Error(), "s3c"):
			t.Errorf("%s: the sentence shows the secret: %v", name, err)
		}
	}
}
