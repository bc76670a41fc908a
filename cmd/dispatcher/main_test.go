package main

import (
	"net"
	"strings"
	"testing"

	"dispatcher/config"
)

// TestExitCodesOfSignals: 128 plus the number of the signal, as in a shell.
func TestExitCodesOfSignals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    int
		byCtrlC bool
		want    int
	}{
		// Also after SIGTERM, for run and sandbox.
		"done":                          {exitOK, false, exitOK},
		"failed":                        {exitFailed, false, exitFailed},
		"run, ended by Ctrl-C":          {exitOK, true, 130},
		"cut short by Ctrl-C":           {exitInterrupted, true, 130},
		"cut short by SIGTERM":          {exitInterrupted, false, 143},
		"failed before Ctrl-C was seen": {exitFailed, true, exitFailed},
	} {
		if got := exitCode(c.code, c.byCtrlC); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestTheVersionNamesItsCommit: the flag and the command.
func TestTheVersionNamesItsCommit(t *testing.T) {
	t.Parallel()
	want := "dispatcher version " + versionText() + ", commit " + commitText() + "\n"
	got := dispatcher(t, "", nil, "--version")
	if got.code != exitOK || got.out != want || got.err != "" {
		t.Errorf("%+v, want %q", got, want)
	}
	for format, part := range map[string]string{
		"table": commitText(), "json": `"commit": "` + commitText() + `"`,
		"csv": "version,commit,go,os,arch\n",
	} {
		got := dispatcher(t, "", nil, "version", "--format", format)
		if got.code != exitOK || !strings.Contains(got.out, part) {
			t.Errorf("%s: got %+v, want exit code %d and %q in the output", format, got, exitOK, part)
		}
	}
}

// TestDoctorWarnsOfAnAddressThatOthersReach: other networks could connect to it.
func TestDoctorWarnsOfAnAddressThatOthersReach(t *testing.T) {
	t.Parallel()
	for address, status := range map[string]string{
		"127.0.0.1:0": statusOK, "[::1]:0": statusOK, "0.0.0.0:0": statusWarn, ":0": statusWarn,
	} {
		if strings.HasPrefix(address, "[") && !hasIPv6(t) {
			continue
		}
		p := &checker{settings: &config.Settings{Listen: address}}
		got := p.checkListen(t.Context())
		if len(got) != 1 || got[0].Status != status ||
			(status == statusWarn) != (got[0].Fix == listenAdvice) {
			t.Errorf("%s: got %+v", address, got)
		}
	}
}

func hasIPv6(t *testing.T) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// TestSegmentsInEachFormat: of an argument, and of lines on standard input.
func TestSegmentsInEachFormat(t *testing.T) {
	t.Parallel()
	lines := `{"text":"x"}` + "\n" + `{"text":"я"}`
	for _, c := range []struct{ in, format, want string }{
		{"", "json", `{"alphabet":"gsm7","units":1,"segments":1}`},
		{"", "csv", "alphabet,units,segments\ngsm7,1,1"},
		{"", "table", "alphabet units segments gsm7 1 1"},
		{
			lines, "json",
			`{"alphabet":"gsm7","units":1,"segments":1}` + "\n" +
				`{"alphabet":"ucs2","units":1,"segments":1}`,
		},
		{lines, "csv", "alphabet,units,segments\ngsm7,1,1\nucs2,1,1"},
		{lines, "table", "alphabet units segments gsm7 1 1 ucs2 1 1"},
	} {
		args := []string{"segments", "--format", c.format}
		if c.in == "" {
			args = append(args, "x")
		}
		got := dispatcher(t, c.in, nil, args...)
		out := strings.TrimSuffix(got.out, "\n")
		if c.format == "table" {
			out = strings.Join(strings.FieldsFunc(out, func(r rune) bool {
				return r <= ' ' || strings.ContainsRune("│─╭╮╰╯┬┴├┤┼", r)
			}),
				" ")
		}
		if got.code != exitOK || out != c.want {
			t.Errorf("%s of %q: %d, %q, want %q", c.format, c.in, got.code, out, c.want)
		}
	}
}
