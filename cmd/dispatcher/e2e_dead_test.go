package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// fails runs the program against the stage and expects exit code 1 and an error that contains want.
func (s *stage) fails(want string, settings map[string]string, args ...string) {
	s.t.Helper()
	if got := s.ask(settings, args...); got.code != exitFailed || !strings.Contains(got.err, want) {
		s.t.Errorf("dispatcher %s, want %q: %+v", strings.Join(args, " "), want, got)
	}
}

// replayed is what "dead replay" prints as JSON.
type replayed struct {
	Replayed []replayedLine `json:"replayed"`
}

// replay publishes dead records again.
func (s *stage) replay(args ...string) []replayedLine {
	s.t.Helper()
	out := s.command(append([]string{
		"dead", "replay", "--reason", "corrected", "--author", "ann", "--format", "json",
	}, args...)...)
	var got replayed
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		s.t.Fatalf("%v: got %s", err, out)
	}
	return got.Replayed
}

// TestDeadRecordsArePublishedAgain: corrected records are published once, under their own id if
// they have one. A record that would be dead again is refused. Nothing printed shows a number or a
// text, except the payload to a login that may read it.
func TestDeadRecordsArePublishedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{match: `prefixes: ["+999"]`})
	const to, text = "+99971234567", "the text of nobody"
	bad := []string{
		`{"id":"number","to":"07700 900123","tenant":"shop","text":"` + text + `"}`,
		`{"to":"` + to + `","text":"` + text + `"}`,
		`{"id":"half`,
		`{"id":"nowhere","to":"+447700900123","text":"` + text + `"}`,
	}
	records := make([]*kgo.Record, len(bad))
	for i, value := range bad {
		records[i] = &kgo.Record{
			Topic: s.topic("bulk"), Key: []byte("one partition"), Value: []byte(value),
		}
	}
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p := s.run("dispatcher")
	p.awaitOutput(t, "dispatcher is running")
	checkNoAPI(t, p)
	s.settled(len(bad))
	at := func(i int) string {
		return fmt.Sprintf("%s/%d/%d", records[i].Topic, records[i].Partition, records[i].Offset)
	}

	shown := s.command("dead", "list") + s.command("dead", "list", "--format", "csv") +
		s.command("dead", "show", "number") + s.command("dead", "show", at(1), "--format", "csv") +
		s.command("dead", "replay", "number", "--set", "to="+to, "--reason", "r", "--dry-run")
	for _, want := range []string{
		at(2), "bad_number", "not an E.164 number", "4 of 4", "give E.164 with the plus",
		"18 characters, 1 segment",
	} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("%q is missing in\n%s", want, shown)
		}
	}
	for _, secret := range []string{text, to, "900123"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown:\n%s", secret, shown)
		}
	}
	if payload := s.command("dead", "show", "number", "--payload"); !strings.Contains(payload, bad[0]) {
		t.Errorf("the payload is missing in\n%s", payload)
	}
	finance := map[string]string{
		"POSTGRES_URL": ledgertest.As(migrations.RoleFinance, s.postgres),
	}
	s.fails("may not read numbers and texts", finance, "dead", "show", "number", "--payload")

	again := []string{"dead", "replay", "--reason", "r"}
	s.fails("would be a dead record again (bad_number)", nil, append(again, "number")...)
	s.fails("would be a dead record again (no_route)", nil, append(again, "nowhere")...)
	s.fails("give the corrected envelope with --file", nil, append(again, at(2), "--set", "to="+to)...)
	s.fails(`no dead record has the id or the position nobody: "dispatcher dead list" has them`+"\n",
		nil, append(again, "nobody")...)

	if got := s.replay("number", "--set", "to="+to, "--unset", "tenant"); got[0].ID != "number" || got[0].NewID ||
		!got[0].Published {
		t.Errorf("got %+v", got)
	}
	without := s.replay("--dead-reason", "bad_id")
	unnamed := without[0]
	if len(without) != 1 || !strings.HasPrefix(unnamed.ID, "dead-") || !unnamed.NewID || !unnamed.Published {
		t.Errorf("got %+v", unnamed)
	}
	s.write("whole.json", `{"id":"whole","to":"`+to+`","text":"`+text+`"}`)
	if got := s.replay(at(2), "--file", s.path("whole.json")); got[0].ID != "whole" {
		t.Errorf("got %+v", got)
	}
	s.settled(len(bad) + 3)
	s.fails("would be a dead record again (no_route)", nil, append(again, "--all", "--dry-run")...)
	s.fails(`was replayed by ann`, nil, append(again, at(1), "--again")...)
	s.fails("which is accepted", nil, append(again, "number", "--set", "to="+to)...)

	if n := s.submitted(); n != 3 {
		t.Errorf("got %d submitted messages, want 3", n)
	}
	if n := s.count(`select count(*) from audit.messages
		where id = 'number' and state = 'accepted' and tenant = ''`); n != 1 {
		t.Error("a field that was left out is still there")
	}
	// The event of the dead record comes before those of the message that was published under its id.
	events := s.statuses(map[string]string{
		"number": "accepted", unnamed.ID: "accepted",
		"whole": "accepted",
	})["number"]
	if len(events) != 3 || events[0].State != "dead" || events[1].State != "sending" {
		t.Errorf("got %+v", events)
	}
	if n := s.count(`select count(*) from audit.dead_records
		where replayed_by = 'ann' and replayed_as in ('number', 'whole', $1)`, unnamed.ID); n != 3 {
		t.Errorf("got %d stored replays", n)
	}
	if n := s.count(`select count(*) from audit.operator_actions
		where action = 'replay' and subject in ('number', $1, $2)`, at(1), at(2)); n != 3 {
		t.Errorf("got %d stored actions", n)
	}
}

// checkNoAPI expects a process to serve neither API nor console: its settings do not say who may
// use them.
func checkNoAPI(t *testing.T, p *process) {
	t.Helper()
	for _, path := range []string{
		"/api/v1/status", "/api/v1/openapi.json", "/api/v1/messages", "/login", "/routes",
	} {
		if status, body := p.get(t, path); status != http.StatusNotFound {
			t.Errorf("%s is answered with %d: %s", path, status, body)
		}
	}
	if status, body := p.get(t, "/"); status != http.StatusOK || strings.Contains(body, "token") {
		t.Errorf("/ is answered with %d: %s", status, body)
	}
}
