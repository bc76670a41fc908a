package config_test

import (
	"strings"
	"testing"

	"dispatcher/config"
)

// TestAYAMLFaultPointsAtWhatIsLeftOpen: the reported line is that of the open bracket or quote, not
// the line where the parser stopped.
func TestAYAMLFaultPointsAtWhatIsLeftOpen(t *testing.T) {
	t.Parallel()
	const a = "channels:\n  a: {provider: sandbox}\n"
	for name, tc := range map[string]struct{ doc, want string }{
		"a mapping, noticed on the next line": {
			a + "  b: {provider: sandbox,\nroutes:\n  - {name: default, weights: {a: 1}}\n",
			"r.yaml:3: not valid YAML: the { that opens here is not closed",
		},
		"a mapping, noticed three lines below": {
			a +
				"routes:\n  - name: default\n    weights: {a: 70\n    mode: weighted\n  - name: other\n" +
				"    weights: {a: 1}\n",
			"r.yaml:5: not valid YAML: the { that opens here is not closed",
		},
		"a list closed as a mapping": {
			a + "routes:\n  - {name: default, channels: [a, a}\n",
			"r.yaml:4: not valid YAML: the [ that opens here is not closed",
		},
		"a double quote": {
			"channels:\n  a: {provider: \"sandbox}\nroutes:\n  - {name: default, weights: {a: 1}}\n",
			"r.yaml:2: not valid YAML: the \" that opens here is not closed",
		},
		"brackets in texts and comments are none": {
			"# { comment\nchannels:\n  a: {provider: 'it''s {', labels: {x: \"\\\"[\"}} # [\n" +
				"  b: plain { text\nroutes:\n  - {name: default\n",
			"r.yaml:6: not valid YAML: the { that opens here is not closed",
		},
		"no bracket at fault": {
			a + "routes:\n  - {name: default, weights: {a: 70}}\n  bad indent: x\n",
			"r.yaml:4: not valid YAML: did not find expected '-' indicator in the block that begins here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.ParseRouting("r.yaml", []byte(tc.doc))
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
