package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAMessageIsSentOverTheChannelThatIsNamed: it goes over that channel whatever the weights are,
// or is not sent. The record says who sent it, and every choice can still be derived again.
func TestAMessageIsSentOverTheChannelThatIsNamed(t *testing.T) {
	t.Parallel()
	channels := threeChannels("", "", "")
	channels[1].weight = "0"
	s := newStage(t, stageConfig{channels: channels})
	p := s.run("dispatcher 1")
	p.awaitOutput(t, "dispatcher is running")
	test := func(channel string, flags ...string) result {
		return s.ask(nil, append([]string{
			"channel", "test", channel, "--to", "+447700900123", "--reason", "new account",
			"--author", "ann", "--format", "json",
		}, flags...)...)
	}
	for range 3 {
		got := test("b")
		var result testResult
		if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exitOK ||
			result.Outcome != "accepted" || result.Channel != "b" {
			t.Fatalf("got %+v, error %v", got, err)
		}
	}
	if a, b := len(s.carriers["a"].Submits()), len(s.carriers["b"].Submits()); a != 0 || b != 3 {
		t.Errorf("a got %d, b got %d", a, b)
	}
	if got := test("b", "--dry-run"); got.code != exitOK || !strings.Contains(got.out, `"dry_run": true`) {
		t.Errorf("a dry run: %+v", got)
	}
	s.command("channel", "drain", "b", "--reason", "maintenance", "--author", "ann")
	if got := test("unknown"); got.code != exitUsage || !strings.Contains(got.err, "unknown") {
		t.Errorf("an unknown channel: %+v", got)
	}
	if got := test("b"); got.code != exitFailed || !strings.Contains(got.err, "is draining") {
		t.Errorf("a draining channel: %+v", got)
	}
	if got := queryOne[int](t, s.postgres, `select count(*) from audit.operator_actions
		where author = 'ann' and action = 'test'`); got != 3 {
		t.Errorf("got %d records", got)
	}
	if got := s.command("audit", "verify"); !strings.Contains(got, "every choice is as it is on record") {
		t.Errorf("audit verify: %s", got)
	}
}
