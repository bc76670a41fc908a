package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/selector"
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
	json := dispatcher(t, "", nil, "preview", "--routing", file, "--format", "json").out
	if !strings.Contains(json, `"low": null`) {
		t.Error(json)
	}
}

func TestPreviewNamesFileKeyAndFix(t *testing.T) {
	t.Parallel()
	zeros := write(t, "zeros.yaml",
		strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", "{a: 0, b: 0, c: 0}", 1))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"all zero": {
			[]string{"--routing", zeros}, zeros + ":7: routes[0].weights: all weights are 0",
		},
		"no file": {
			[]string{"--routing", "gone.yaml"},
			"--routing: open gone.yaml: no such file or directory; correct the path",
		},
		"no flag": {nil, "--routing is missing"},
		"format":  {[]string{"--routing", zeros, "--format", "xml"}, "must be table, json or csv"},
	} {
		got := dispatcher(t, "", nil, append([]string{"preview"}, tc.args...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}

func TestForecastsInCSVHaveEveryDigit(t *testing.T) {
	t.Parallel()
	document := routeOver("mode: best_worker", "a: labels: {x: y}", "b: labels: {x: z}")
	got := dispatcher(t, "", nil, "explain", "--format", "csv", "--routing",
		write(t, "r.yaml", document),
		"--message", write(t, "m.json",
			`{"id":"1","to":"+447700900123","text":"hi","labels":{"x":"y","v":"1","w":"1"}}`))
	if !strings.Contains(got.out, "a,0.3333333333333333,0,true,\n") {
		t.Errorf("got %+v, want %q in the output", got, "a,0.3333333333333333,0,true,\n")
	}
}

// TestForecastsDrawWithTheKeyOfAStoppedEmbeddedServer: the key file is in the data folder.
func TestForecastsDrawWithTheKeyOfAStoppedEmbeddedServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	hex := strings.Repeat("02", selector.KeySize)
	key, err := selector.ParseKey(hex)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(folder, config.EmbeddedDrawKey), []byte(hex+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPATCHER_DATA_DIR=" + folder}
	files := []string{
		"--routing", write(t, "routing.yaml", testRouting), "--message",
		write(t, "message.json", testMessage), "--format", "json",
	}
	story := decoded[report.Explanation](t,
		dispatcher(t, "", env, append([]string{"explain"}, files...)...))
	if story.DrawKeyID != key.ID() || strings.Contains(story.Text, "demo key") {
		t.Errorf("got %+v", story)
	}
	got := dispatcher(t, "", env, "keys", "show", "--format", "csv")
	if got.code != exitOK || !strings.Contains(got.out, key.ID()) {
		t.Errorf("got %+v", got)
	}
	elsewhere := append(env, "DISPATCHER_POSTGRES_URL=postgres://u@127.0.0.1:1/x")
	got = dispatcher(t, "", elsewhere, "keys", "show")
	if got.code != exitUsage || !strings.Contains(got.err, "DISPATCHER_DRAW_KEY_FILE is missing") {
		t.Errorf("with a database that has other keys: %+v", got)
	}
}

// TestForecastsAskTheScoringFunctionWithItsToken: if the token's file cannot be read, the output
// says so.
func TestForecastsAskTheScoringFunctionWithItsToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"scores":[{"channel":"a","score":0.2},{"channel":"b","score":0.9}]}`)
	}))
	t.Cleanup(server.Close)
	document := routeOver(`mode: best_worker, scoring: {function: "`+server.URL+`", `+
		`allow_private: true, batch: true, deadline: 5s, token_file: token}`,
		"a: labels: {x: y}", "b: capacity: 1")
	routing := write(t, "routing.yaml", document)
	forecast := func() report.Explanation {
		return decoded[report.Explanation](t,
			dispatcher(t, testMessage, []string{"DISPATCHER_SECRETS_DIR=" + filepath.Dir(routing)},
				"explain", "--format", "json", "--routing", routing, "--message", "-"))
	}
	story := forecast()
	if story.Trouble != "function_status" ||
		!strings.Contains(story.Text,
			"was asked without its token: scoring.token_file: there is no file token ") {
		t.Errorf("got %+v", story)
	}
	err := os.WriteFile(filepath.Join(filepath.Dir(routing), "token"), []byte("hush\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	story = forecast()
	if channelOf(&story) != "b" || story.Trouble != "" || strings.Contains(story.Text, "token") {
		t.Errorf("got %+v", story)
	}
}

func TestForecastsNameTheFlagAndThePlaceOfWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct{ message, state string }{
		"message.json:2:9: the record is not": {"{\"id\":\"1\",\n  \"to\": +44}", ""},
		"--message: ":                         {`{"id":"1"}`, ""},
		"more follows behind it":              {testMessage, "{} {}"},
	} {
		_, got := forecastOf(t, tc.message, tc.state)
		if got.code != exitUsage || !strings.Contains(got.err, want) ||
			!strings.Contains(got.err, "--") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}
