package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/selector"
)

// edited reads a document, changes it and returns the new text.
func edited(text []byte, change func(*config.Document) (*config.Document, error)) ([]byte, error) {
	d, err := config.ParseApplied("routing", text)
	if err != nil {
		return nil, err
	}
	if d, err = change(d); err != nil {
		return nil, err
	}
	return d.Text, nil
}

func setWeights(text []byte, route string, weights []config.Weight) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document, error) {
		return d.SetWeights(route, weights)
	})
}

func setState(text []byte, channel string, state config.ChannelState) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document, error) {
		return d.SetState(channel, state)
	})
}

func setLimit(text []byte, channel string, limit admission.Limit) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document, error) {
		return d.SetLimit(channel, limit)
	})
}

func dropLimit(text []byte, channel string, key admission.Key) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document, error) {
		return d.DropLimit(channel, key)
	})
}

// weights reads "a=25 b=34.5".
func weights(text string) []config.Weight {
	var out []config.Weight
	for word := range strings.FieldsSeq(text) {
		channel, w, _ := strings.Cut(word, "=")
		out = append(out, config.Weight{Channel: channel, Weight: selector.MustWeight(w)})
	}
	return out
}

const three = "channels: {a: {provider: sandbox}, b: {provider: sandbox}, c: {provider: sandbox}}\n"

func TestSetWeightsKeepsCommentsAndOtherLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, set, want string }{
		"flow": {
			"routes: [{name: r, weights: {a: 25, b: 75}}] # end\n", "a=30 b=70",
			"routes: [{name: r, weights: {a: 30, b: 70}}] # end\n",
		},
		"flow, added": {
			"routes: [{name: r, weights: {a: 25, b: 75}}]", "c=1.5",
			"routes: [{name: r, weights: {a: 25, b: 75, c: 1.5}}]",
		},
		"flow, trailing comma": {
			"routes: [{name: r, weights: {a: 25, b: 75,}}]", "c=1.5",
			"routes: [{name: r, weights: {a: 25, b: 75, c: 1.5}}]",
		},
		"block": {
			"routes:\n- name: r\n  weights:\n    a: 25   # main\n    # rest\n    b: 75\n", "b=1",
			"routes:\n- name: r\n  weights:\n    a: 25 # main\n    # rest\n    b: 1\n",
		},
		"block, added": {
			"routes:\n- name: r\n\n  weights:\n    a: 25\n    b:  75 # main\n\n  # c: 5\n  wait:  1s\n",
			"c=5 b=74",
			"routes:\n- name: r\n\n  weights:\n    a: 25\n    b: 74 # main\n    c: 5\n\n  # c: 5\n" +
				"  wait:  1s\n",
		},
		"block at the end": {
			"routes:\n- name: r\n  weights:\n    a: 25", "b=5 c=70",
			"routes:\n- name: r\n  weights:\n    a: 25\n    b: 5\n    c: 70",
		},
		"value below its key": {
			"routes:\n- name: r\n  weights:\n    a:\n      25 # main\n", "a=1 b=2",
			"routes:\n- name: r\n  weights:\n    a: 1 # main\n    b: 2\n",
		},
		"CRLF": {
			"routes:\r\n- name: r\r\n  weights:\r\n    a: 25\r\n", "a=1 b=2",
			"routes:\r\n- name: r\r\n  weights:\r\n    a: 1\r\n    b: 2\r\n",
		},
		"quotes": {
			"routes: [{name: r, weights: {'a': '25', \"b\": \"75\"}}]", "a=1 b=2 c=3",
			"routes: [{name: r, weights: {'a': '1', \"b\": \"2\", \"c\": \"3\"}}]",
		},
		"lines between braces": {
			"routes:\n  - {name: r, weights: {\n  a: 25, # main\n  b: 75  # rest\n}} # end\n# below\n",
			"c=3 b=4",
			"routes:\n  # end\n  - name: r\n    weights:\n      a: 25 # main\n      b: 4 # rest\n" +
				"      c: 3\n# below\n",
		},
		"brace behind the value": {
			"routes: [{name: r, weights: {\n  a: 25,\n  b: 75}}]", "c=3",
			"routes:\n  - name: r\n    weights:\n      a: 25\n      b: 75\n      c: 3",
		},
		"wide characters": {
			"routes: [{name: r, match: {tenants: ['żółć 日本']}, weights: {a: 25, b: 75}}]", "b=3",
			"routes: [{name: r, match: {tenants: ['żółć 日本']}, weights: {a: 25, b: 3}}]",
		},
		"tagged value": {
			"routes: [{name: r, weights: {a: !!str 1}}]", "a=2", "routes: [{name: r, weights: {a: 2}}]",
		},
		"block text": {
			"routes:\n- name: r\n  weights:\n    a: |-\n      1\n", "a=2",
			"routes:\n- name: r\n  weights:\n    a: 2\n",
		},
		"behind an alias": {
			"routes: [{name: r, weights: {a: &w 1, b: *w}}]", "c=2",
			"routes: [{name: r, weights: {a: &w 1, b: *w, c: 2}}]",
		},
		"the first key of a route": {
			"routes:\n- weights: {a: 1} # x\n  name: r\n", "a=2",
			"routes:\n- weights: {a: 2} # x\n  name: r\n",
		},
		"without spaces": {
			"routes: [{\"name\":r, \"weights\":{\"a\":25,\"b\":75}}]", "a=1",
			"routes: [{\"name\": r, \"weights\": {\"a\": 1, \"b\": 75}}]",
		},
		"odd line breaks": {
			"# x\u2028# y\u0085# z\rroutes: [{name: r, weights: {a: 25, b: 75}}]", "b=3",
			"# x\u2028# y\u0085# z\rroutes: [{name: r, weights: {a: 25, b: 3}}]",
		},
		"the right one of two": {
			"routes:\n- {name: q, match: {tenant: x}, weights: {a: 1}}\n- {weights: {a: 1}, name: r}\n",
			"a=2",
			"routes:\n- {name: q, match: {tenant: x}, weights: {a: 1}}\n- {weights: {a: 2}, name: r}\n",
		},
		"equal in another form": {
			"routes: [{name: r, weights: {a: 25.00, b: 75}}]", "a=25 b=74",
			"routes: [{name: r, weights: {a: 25.00, b: 74}}]",
		},
		"nothing to do": {
			"routes: [{name: r, weights: {a: 25.00, b: 75}}]", "a=25",
			"routes: [{name: r, weights: {a: 25.00, b: 75}}]",
		},
		"another mode": {
			"routes: [{name: r, mode: round_robin, weights: {a: 25, b: 75}}]", "a=0",
			"routes: [{name: r, mode: round_robin, weights: {a: 0, b: 75}}]",
		},
		"health on two channels": {
			"routes: [{name: r, weights: {a: 25, b: 75}, health: {errors: 9}}]", "a=0",
			"routes: [{name: r, weights: {a: 0, b: 75}, health: {errors: 9}}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setWeights([]byte(three+c.doc), "r", weights(c.set))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(three+c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetStateKeepsCommentsAndOtherLines(t *testing.T) {
	t.Parallel()
	const end = "\nroutes: [{name: r, weights: {a: 1}}]\n"
	for name, c := range map[string]struct {
		doc   string
		state config.ChannelState
		want  string
	}{
		"replaced": {
			"channels: {a: {provider: sandbox, state: disabled}} # x", config.Draining,
			"channels: {a: {provider: sandbox, state: draining}} # x",
		},
		"quoted": {
			"channels: {a: {provider: sandbox, state: 'disabled'}}", config.Enabled,
			"channels: {a: {provider: sandbox, state: 'enabled'}}",
		},
		"flow, added": {
			"channels: {a: {provider: sandbox}}", config.Draining,
			"channels: {a: {provider: sandbox, state: draining}}",
		},
		"flow, added in front": {
			"channels: {a: {provider: sandbox, test: true}}", config.Draining,
			"channels: {a: {provider: sandbox, state: draining, test: true}}",
		},
		"block, added": {
			"channels:\n  a:\n    # the best\n    provider: sandbox # free\n    labels: {x: 1}",
			config.Disabled,
			"channels:\n  a:\n    # the best\n    provider: sandbox # free\n    state: disabled\n" +
				"    labels: {x: 1}",
		},
		"lines between braces": {
			"channels: {a: {\n  provider: sandbox, # free\n  test: true}}", config.Disabled,
			"channels:\n  a:\n    provider: sandbox # free\n    state: disabled\n    test: true",
		},
		"key without value": {
			"channels:\n  a:\n    state:  # none\n    provider: sandbox", config.Disabled,
			"channels:\n  a:\n    state: disabled # none\n    provider: sandbox",
		},
		"key with null": {
			"channels: {a: {provider: sandbox, state: ~}}", config.Disabled,
			"channels: {a: {provider: sandbox, state: disabled}}",
		},
		"enabled by default": {
			"channels: {a: {provider: sandbox}}", config.Enabled, "channels: {a: {provider: sandbox}}",
		},
		"byte order mark": {
			"\uFEFFchannels: {a: {provider: sandbox, state: disabled}}", config.Draining,
			"\uFEFFchannels: {a: {provider: sandbox, state: draining}}",
		},
		"provider is not first": {
			"channels:\n  a:\n    settings:\n      address: x:1\n    provider: smpp\n    test: true",
			config.Draining,
			"channels:\n  a:\n    settings:\n      address: x:1\n    provider: smpp\n" +
				"    state: draining\n    test: true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setState([]byte(c.doc+end), "a", c.state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+end, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditedJSONStaysJSON(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"channels":{"a":{"provider":"sandbox"},"b":{"provider":"sandbox"}},"routes":[{"name":"r","weights":{"a":25}}]}`,
		"{\n\t\"channels\": {\n\t\t\"a\": {\n\t\t\t\"provider\": \"sandbox\"\n\t\t},\n\t\t\"b\": {\n" +
			"\t\t\t\"provider\": \"sandbox\",\n\t\t\t\"state\": null\n\t\t}\n\t},\n" +
			"\t\"routes\": [\n\t\t{\n\t\t\t\"name\": \"r\",\n\t\t\t\"weights\": {\n\t\t\t\t\"a\": 25\n" +
			"\t\t\t}\n\t\t}\n\t]\n}\n",
	} {
		text := []byte(doc)
		var err error
		for _, channel := range []string{"a", "b"} {
			if text, err = setState(text, channel, config.Disabled); err != nil {
				t.Fatal(err)
			}
		}
		if text, err = setWeights(text, "r", weights("a=0.5 b=2")); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Errorf("the result is not JSON:\n%s", text)
		}
		if strings.Count(doc, "\n") > 0 &&
			!bytes.Contains(text, []byte("\n\t\t\t\t\"a\": 0.5,\n\t\t\t\t\"b\": 2\n")) {
			t.Errorf("the indentation was not kept:\n%s", text)
		}
	}
}

func TestExampleCanBeEdited(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := setWeights(doc, "codes", weights("alpha=60 beta=39.5 gamma=0.5"))
	if err != nil {
		t.Fatal(err)
	}
	got, err = setState(got, "beta", config.Draining)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Change{
		{Path: "channels.beta.state", From: "enabled", To: "draining"},
		{Path: "routes.codes.weights.alpha", From: "70", To: "60"},
		{Path: "routes.codes.weights.beta", From: "30", To: "39.5"},
		{Path: "routes.codes.weights.gamma", To: "0.5"},
	}
	if diff := cmp.Diff(want, config.Diff(parse(t, string(doc)), parse(t, string(got)))); diff != "" {
		t.Error(diff)
	}
}

func TestEditsThatCannotBeMadeSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, set, want string }{
		"no route": {
			"routes: [{name: x, weights: {a: 1}}]", "a=2", `there is no route "r"; known are x`,
		},
		"misspelt route": {
			"routes: [{name: rr, weights: {a: 1}}]", "a=2", `there is no route "r"; known are rr`,
		},
		"no weights": {
			"routes: [{name: r, mode: round_robin, channels: [a]}]", "a=2",
			"route r lists its channels without weights, because mode round_robin chooses without them",
		},
		"unknown channel": {
			"routes: [{name: r, weights: {a: 1}}]", "d=2",
			`there is no channel "d"; define it under channels`,
		},
		"twice": {
			"routes: [{name: r, weights: {a: 1}}]", "a=2 a=3", "channel a is given two weights",
		},
		"all zero": {
			"routes: [{name: r, weights: {a: 1}}]", "a=0",
			"routing with the change:2: routes[0].weights: all weights are 0: give at least one channel a " +
				"weight above 0",
		},
		"anchored value": {
			"routes: [{name: r, weights: {a: &w 1, b: *w}}]", "a=2",
			`routing with the change: a is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"alias as value": {
			"routes: [{name: r, weights: {a: &w 1, b: *w}}]", "b=2",
			`routing with the change: b is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"anchored weights": {
			"routes: [{name: r, weights: &w {a: 1}}, {name: q, weights: *w}]", "a=2",
			`routing with the change: line 2: weights is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"alias as weights": {
			"routes: [{name: q, weights: &w {a: 1}}, {name: r, weights: *w}]", "a=2",
			`routing with the change: line 2: weights is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"anchored route": {
			"routes: [&r {name: r, weights: {a: 1}}]", "a=2",
			`routing with the change: line 2: r is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"anchored routes": {
			"routes: &r [{name: r, weights: {a: 1}}]", "a=2",
			`routing with the change: line 2: routes is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"a comment behind a brace": {
			"routes:\n- name: r\n  weights: { # all\n    a: 1}", "a=2",
			`routing with the change: line 4: a comment in this entry would be lost; edit the file and use "dispatcher routing apply"`,
		},
		"a document in itself": {
			"routes: [{name: r, wait: soon, weights: {a: 1}}]", "a=2",
			`routing:2: routes[0].wait: "soon" is not a duration; write for example 30s, 10m or 24h`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setWeights([]byte(three+c.doc), "r", weights(c.set))
			if err == nil {
				t.Fatalf("no error; result\n%s", got)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatesThatCannotBeSetSayWhatToDo(t *testing.T) {
	t.Parallel()
	const routes = "\nroutes: [{name: r, weights: {a: 1}}]\n"
	for name, c := range map[string]struct {
		doc, channel string
		state        config.ChannelState
		want         string
	}{
		"unknown channel": {
			"channels: {a: {provider: sandbox}}", "b", config.Disabled,
			`there is no channel "b"; define it under channels`,
		},
		"unknown state": {
			"channels: {a: {provider: sandbox}}", "a", "drain",
			`state "drain" is unknown; use enabled or draining or disabled`,
		},
		"alias as state": {
			"channels: {a: {provider: sandbox, state: &s disabled}, b: {provider: sandbox, state: *s}}", "b",
			config.Draining,
			`routing with the change: line 1: state is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"shared channel": {
			"channels: {a: &a {provider: sandbox}, b: *a}", "b", config.Draining,
			`routing with the change: line 1: b is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
		"anchored provider": {
			"channels: {a: {provider: &p sandbox}, b: {provider: *p}}", "a", config.Draining,
			`routing with the change: line 1: provider is shared by an anchor; edit the file and use "dispatcher routing apply"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setState([]byte(c.doc+routes), c.channel, c.state)
			if err == nil {
				t.Fatalf("no error; result\n%s", got)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestATextThatIsEditedBackStaysTheSame: the first edit puts an entry into the library's layout.
// After that, the same values give the same text.
func TestATextThatIsEditedBackStaysTheSame(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, route, old, now string }{
		"example": {string(example), "codes", "alpha=70 beta=30", "alpha=60 beta=40"},
		"by hand": {
			three + "routes:\n- {name: r, weights: {\n   a: 25,   # main\n\n   b:  '75'}}\n", "r",
			"a=25 b=75", "a=30 b=70",
		},
		"json": {
			`{"channels": {"a": {"provider": "sandbox"}, "b": {"provider": "sandbox"}}, "routes": [{"name": "r", "weights": {"a": 25, "b": 75}}]}`, "r", "a=25 b=75", "a=30 b=70",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := []string{c.text}
			for range 2 {
				for _, set := range []string{c.now, c.old} {
					got, err := setWeights([]byte(texts[len(texts)-1]), c.route, weights(set))
					if err != nil {
						t.Fatal(err)
					}
					texts = append(texts, string(got))
				}
			}
			if texts[3] != texts[1] || texts[4] != texts[2] {
				t.Errorf("%s", cmp.Diff(texts[1:3], texts[3:]))
			}
			if strings.Count(texts[1], "#") != strings.Count(c.text, "#") ||
				strings.Count(texts[1], "'") != strings.Count(c.text, "'") {
				t.Errorf("comments or quotes were lost:\n%s", texts[1])
			}
		})
	}
}
