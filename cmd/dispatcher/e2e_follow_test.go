package main

import (
	"strings"
	"testing"
)

// TestSendWaitAndTailFollowAMessageToItsEnd: one message is delivered, another matches no route,
// both through a running dispatcher.
func TestSendWaitAndTailFollowAMessageToItsEnd(t *testing.T) {
	t.Parallel()
	behaviour := quick()
	behaviour.Receipts = true
	s := newStage(t,
		stageConfig{
			channels: []channel{{name: "a", weight: "1", behaviour: behaviour}},
			match:    `prefixes: ["+999"]`,
		})
	s.runAll(1)
	var env []string
	for name, value := range s.settings {
		// Paths relative to the folder of the process.
		if name != "ROUTING_FILE" && name != "DRAW_KEY_FILE" {
			env = append(env, "DISPATCHER_"+name+"="+value)
		}
	}
	send := func(id, to string) result {
		return dispatcher(t, "", env, "send", "--lane", "bulk", "--id", id, "--to", to,
			"--text", "Your parcel arrives tomorrow.", "--wait", "--timeout", "1m")
	}
	good := send("good", "+99971234567")
	if good.code != exitOK || !strings.Contains(good.out, "good was delivered by channel a") ||
		!strings.Contains(good.out, "  good  accepted ") {
		t.Errorf("got %+v, want exit code %d, %q in the output and %q in the output",
			good, exitOK, "good was delivered by channel a", "  good  accepted ")
	}
	bad := send("bad", "+447700900123")
	if bad.code != exitFailed || !strings.Contains(bad.err, "bad is dead: no_route") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			bad, exitFailed, "bad is dead: no_route")
	}
	tail := dispatcher(t, "", env, "tail", "--until-final", "--id", "good", "--id", "bad",
		"--state", "delivered", "--state", "dead")
	lines := strings.Split(strings.TrimSpace(tail.out), "\n")
	if tail.code != exitFailed || len(lines) != 2 {
		t.Errorf("got %+v", tail)
	}
	for _, shown := range []string{good.out, bad.out, bad.err, tail.out} {
		if strings.Contains(shown, "999712") || strings.Contains(shown, "0900123") ||
			strings.Contains(shown, "parcel") {
			t.Errorf("a number or a text is shown: %s", shown)
		}
	}
}
