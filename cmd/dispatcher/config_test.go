package main

import (
	"encoding/json"
	"strings"
	"testing"

	"dispatcher/config"
)

func TestConfigShowsEverySettingAndHidesSecrets(t *testing.T) {
	t.Parallel()
	got := dispatcher(t, "",
		[]string{"DISPATCHER_POSTGRES_URL=postgres://me:hush@db/x", "DISPATCHER_REGION=west"},
		"config", "--format", "json")
	var list []config.Setting
	err := json.Unmarshal([]byte(got.out), &list)
	if err != nil || got.code != exitOK || strings.Contains(got.out, "hush") {
		t.Fatalf("%v: got %+v", err, got)
	}
	sources := map[string]config.Setting{}
	for _, s := range list {
		sources[s.Name] = s
		if s.Help == "" {
			t.Errorf("%s has no help", s.Name)
		}
	}
	s := sources["DISPATCHER_POSTGRES_URL"]
	if s.Value != "postgres://me:***@db/x" || s.Source != "environment" {
		t.Errorf("got %+v, want Value %v and Source %v", s, "postgres://me:***@db/x", "environment")
	}
	if s := sources["DISPATCHER_KAFKA_GROUP"]; s.Value != "dispatcher" || s.Source != "default" {
		t.Errorf("got %+v, want Value %v and Source %v", s, "dispatcher", "default")
	}
}

func TestConfigReportsSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"DISPATCHER_REGOIN=west": "did you mean DISPATCHER_REGION?",
		"DISPATCHER_LISTEN=8080": "DISPATCHER_LISTEN is not host:port",
		"DISPATCHER_BATCH=many":  "DISPATCHER_BATCH cannot be read",
	} {
		got := dispatcher(t, "", []string{variable}, "config")
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want exit code %d and %q in the error", variable, got, exitUsage, want)
		}
	}
}

func TestConfigChecksARoutingDocument(t *testing.T) {
	t.Parallel()
	good := dispatcher(t, "", nil, "config", "--routing", write(t, "routing.yaml", testRouting),
		"--format", "json")
	if good.code != exitOK || !strings.Contains(good.out, `"timezone": "Europe/London"`) ||
		!strings.Contains(good.out, `"default"`) {
		t.Errorf("got %+v, want exit code %d, %q in the output and %q in the output",
			good, exitOK, `"timezone": "Europe/London"`, `"default"`)
	}
	bad := dispatcher(t, "", nil, "config", "--routing",
		write(t, "bad.yaml", strings.Replace(testRouting, "weights", "ueights", 1)))
	if bad.code != exitUsage || !strings.Contains(bad.err, "bad.yaml:7: ") ||
		!strings.Contains(bad.err, "weights") {
		t.Errorf("got %+v, want exit code %d, %q in the error and %q in the error",
			bad, exitUsage, "bad.yaml:7: ", "weights")
	}
}

// Settings that an adapter would refuse are refused by every command that reads a document, before
// anything is applied.
func TestADocumentWithSettingsThatNoAdapterTakesIsRefused(t *testing.T) {
	t.Parallel()
	file := write(t, "routing.yaml", `channels:
  a: {provider: twilio, settings: {acount_sid: x}}
  b: {provider: smpp, settings: {address: nowhere, system_id: acme, password_file: p}}
  c: {provider: twilio, test: true}
routes: [{name: r, weights: {a: 1, b: 1, c: 1}}]
`)
	for _, args := range [][]string{{"config", "--routing", file}, {"preview", "--routing", file}} {
		got := dispatcher(t, "", nil, args...)
		for _, want := range []string{
			"channels.a.settings: ", "did you mean account_sid?", "channels.b.settings: ",
			"is not host:port",
		} {
			if !strings.Contains(got.err, want) {
				t.Errorf("%v: no %s in the output: %+v", args, want, got)
			}
		}
		if got.code != exitUsage || strings.Contains(got.err, "channels.c") {
			t.Errorf("%v: got %+v, want exit code %d and no %q in the error",
				args, got, exitUsage, "channels.c")
		}
	}
}
