package config_test

import (
	"strings"
	"testing"

	"dispatcher/config"
)

func TestPausesAreEditedInAnyDocument(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"block": "# ours\nchannels:\n  a: {provider: sandbox}\nroutes:\n  - {name: r, match: {}, " +
			"weights: {a: 1}} # all\nlanes: {bulk: {}}\n",
		"with a time zone": "timezone: UTC # ours\nchannels: {a: {provider: sandbox}}\nroutes: " +
			"[{name: r, match: {}, weights: {a: 1}}]\nlanes: {bulk: {}}\n",
		"JSON": `{"channels":{"a":{"provider":"sandbox"}},"routes":[{"name":"r","match":{},` +
			`"weights":{"a":1}}],"lanes":{"bulk":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := config.ParseDocument("routing", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			want := config.Paused{
				Lanes: []string{"bulk"}, Tenants: []string{"shop", "null", "12"},
				Prefixes: []string{"+447"},
			}
			paused, err := d.SetPaused(want)
			if err != nil {
				t.Fatal(err)
			}
			p := paused.Routing.Paused
			if !p.Holds("bulk", "x", "r", "") || !p.Holds("otp", "12", "r", "") ||
				!p.Holds("otp", "x", "r", "+447700900123") || p.Holds("otp", "x", "r", "+4620") {
				t.Errorf("%+v in\n%s", p, paused.Text)
			}
			if strings.Contains(text, "# ours") != strings.Contains(string(paused.Text), "# ours") {
				t.Errorf("a comment was lost:\n%s", paused.Text)
			}
			if again, err := paused.SetPaused(p); err != nil || again != paused {
				t.Errorf("an edit without a change: %v", err)
			}
			all, err := paused.SetPaused(config.Paused{All: true, Routes: []string{"r"}})
			if err != nil || !all.Routing.Paused.Holds("", "", "", "") {
				t.Fatal(err)
			}
			resumed, err := all.SetPaused(config.Paused{})
			if err != nil || resumed.Routing.Paused.Any() {
				t.Fatal(err)
			}
			if changes := config.Diff(d.Routing, resumed.Routing); len(changes) > 0 {
				t.Errorf("%v in\n%s", changes, resumed.Text)
			}
			for _, wrong := range []config.Paused{
				{Lanes: []string{"blk"}}, {Routes: []string{"s"}},
			} {
				if _, err := d.SetPaused(wrong); err == nil || !strings.Contains(err.Error(), "there is no") {
					t.Errorf("%+v: %v", wrong, err)
				}
			}
		})
	}
}
