package app

import (
	"errors"
	"testing"

	"dispatcher/config"
)

// listening returns the names of the channels with a listener; "!" marks those whose settings
// cannot be used.
func (s *reloadRig) listening(names ...string) (received string) {
	for _, name := range names {
		l, known := s.listeners.Listener(name)
		switch {
		case known && l == nil:
			received += name + "! "
		case known:
			received += name + " "
		}
	}
	return received
}

const (
	heardSMPP = `  s: {provider: smpp, settings: {address: "CARRIER", system_id: me, ` +
		`password_file: me.secret}}`
	heardSinch = `  w: {provider: sinch, settings: {service_plan_id: plan, token_file: ` +
		`me.secret, callback_secret_files: me.secret}}`
)

// TestWebhookListenersFollowTheRouting: all change at once, before the pipeline gets the new
// channels, and change back if the pipeline refuses them.
func TestWebhookListenersFollowTheRouting(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.connections.connector.callback = func(c *config.Channel) string {
		return "https://sms.example.com/receipts/" + c.Name
	}
	s.write("me.secret", "right")
	names := []string{"s", "w", "v"}
	document := func(channels, route string) string {
		return "channels:\n" + channels + "\nroutes: [{name: default, mode: round_robin, " +
			"channels: [" + route + "]}]\n"
	}
	step := func(document, want string) {
		t.Helper()
		if err := s.put(document); err != nil {
			t.Fatal(err)
		}
		if got := s.listening(names...); got != want {
			t.Errorf("got listeners %q, want %q", got, want)
		}
	}
	step(document(heardSMPP, "s"), "")
	step(document(heardSMPP+"\n"+heardSinch, "s, w"), "w ")
	before, _ := s.listeners.Listener("w")
	step(
		document(
			heardSMPP+"\n"+heardSinch+"\n"+
				`  v: {provider: sinch, settings: {service_plan_id: other, token_file: `+
				`missing.secret}}`,
			"s, w, v",
		),
		"w v! ",
	)
	step(
		document(
			heardSMPP+"\n"+heardSinch+"\n"+
				`  v: {provider: sinch, settings: {service_plan_id: other, token_file: `+
				`missing.secret}}`,
			"w, s, v",
		),
		"w v! ",
	)
	if after, _ := s.listeners.Listener("w"); after != before {
		t.Error("an unchanged channel has another adapter")
	}
	s.refuse = errors.New("no")
	if err := s.put(document(heardSMPP, "s")); err == nil {
		t.Fatal("a refused routing was accepted")
	}
	if got := s.listening(names...); got != "w v! " {
		t.Errorf("got listeners %q after a refused routing", got)
	}
	s.refuse = nil
	step(document(heardSMPP, "s"), "")
}

// TestAChannelThatKeepsItsConnectionKeepsItsListener: if the new settings cannot be used, the old
// ones stay, for messages and for receipts.
func TestAChannelThatKeepsItsConnectionKeepsItsListener(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.connections.connector.callback = func(*config.Channel) string {
		return "https://sms.example.com/receipts/w"
	}
	s.write("me.secret", "right")
	route := "\nroutes: [{name: default, weights: {w: 1}}]\n"
	if err := s.put("channels:\n" + heardSinch + route); err != nil {
		t.Fatal(err)
	}
	before, known := s.listeners.Listener("w")
	if err := s.put("channels:\n  w: {provider: sinch, settings: {service_plan_id: plan, " +
		"token_file: missing.secret}}" + route); err != nil {
		t.Fatal(err)
	}
	if after, _ := s.listeners.Listener("w"); !known || after == nil || after != before {
		t.Errorf("got listener %v", after)
	}
}

// TestOnlyAPIsOnThisMachineAreCalledLocal: other APIs get no address that they cannot reach.
func TestOnlyAPIsOnThisMachineAreCalledLocal(t *testing.T) {
	t.Parallel()
	for base, want := range map[any]bool{
		"http://127.0.0.1:80/v1": true, "http://localhost:1": true, "https://[::1]:5": true,
		"http://127.5.5.5":        true,
		"https://api.example.com": false, "http://10.0.0.1": false,
		"http://localhost.example.com": false, "": false, 5: false, nil: false, "::": false,
	} {
		if got := Local(&config.Channel{Settings: map[string]any{"base_url": base}}); got != want {
			t.Errorf("%v: got local %v", base, got)
		}
	}
}
