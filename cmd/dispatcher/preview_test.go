package main

import (
	"strings"
	"testing"
)

func TestPreviewNeedsOnlyTheDocument(t *testing.T) {
	t.Parallel()
	file := write(t, "routing.yaml", strings.Replace(testRouting, "c: 60}", "c: 0}", 1))
	got := dispatcher(t, "", nil, "preview", "--routing", file, "--format", "csv")
	want := `route,mode,size,channel,weight,low,high,share
default,weighted,40,a,25,0,24,0.625
default,weighted,40,b,15,25,39,0.375
default,weighted,40,c,0,,,0
`
	if got.code != exitOK || got.out != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if json := dispatcher(t, "", nil, "preview", "--routing", file, "--format", "json").out; !strings.Contains(json, `"low": null`) {
		t.Error(json)
	}
}

func TestPreviewNamesFileKeyAndMend(t *testing.T) {
	t.Parallel()
	zeros := write(t, "zeros.yaml", strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", "{a: 0, b: 0, c: 0}", 1))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"all zero": {[]string{"--routing", zeros}, zeros + ":7: routes[0].weights: all weights are 0"},
		"no file":  {[]string{"--routing", "gone.yaml"}, "--routing: open gone.yaml: no such file or directory; correct the path"},
		"no flag":  {nil, "--routing is missing"},
		"format":   {[]string{"--routing", zeros, "--format", "xml"}, "must be table, json or csv"},
	} {
		got := dispatcher(t, "", nil, append([]string{"preview"}, tc.args...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}
