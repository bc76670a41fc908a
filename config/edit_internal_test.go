package config

import (
	"bytes"
	"strings"
	"testing"
)

// An edit relies on positions from the YAML library. If one is wrong, reading the result finds it
// and the document stays unchanged.
func TestEditAtAWrongPlaceIsNotDelivered(t *testing.T) {
	t.Parallel()
	text := []byte("channels: {a: {provider: sandbox}, b: {provider: sandbox}}\n" +
		"routes: [{name: r, weights: {a: 1, b: 2}}]")
	for _, c := range []struct{ wrong, with, want string }{
		{
			"b: 2", "b: 3",
			`the edit would also change routes.r.weights.b; edit the file and use "dispatcher routing apply"`,
		},
		{"name: r", "name: q", `the edit would also change`},
		{"provider: sandbox", "provider: smpp, test: yes", "neither true nor false"},
	} {
		d, err := ParseDocument("routing", text)
		if err != nil {
			t.Fatal(err)
		}
		wrong := bytes.Replace(text, []byte(c.wrong), []byte(c.with), 1)
		got, err := d.edited(wrong, func(*Routing) *Routing { return d.Routing })
		if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("document %v, error %v, want %s", got, err, c.want)
		}
	}
}
