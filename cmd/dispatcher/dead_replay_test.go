package main

import (
	"strings"
	"testing"
)

func TestAReplayNamesRecordsOrAFilter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags   replayFlags
		records int
		want    string // part of the error; empty for none
	}{
		"a record":           {replayFlags{}, 1, ""},
		"a filter":           {replayFlags{filter: deadFilter{reason: "no_route"}}, 0, ""},
		"all":                {replayFlags{all: true}, 0, ""},
		"nothing":            {replayFlags{}, 0, "name a record, or say which are meant"},
		"a number":           {replayFlags{reason: "for +447700900123"}, 1, "reason has a phone"},
		"both":               {replayFlags{filter: deadFilter{lane: "otp"}}, 1, "not both"},
		"too many":           {replayFlags{all: true, filter: deadFilter{limit: 1001}}, 0, "--limit"},
		"one value for many": {replayFlags{all: true, sets: []string{"to=x"}}, 0, "name one"},
	} {
		if c.flags.reason == "" {
			c.flags.reason = "r"
		}
		c.flags.author = "ann"
		_, err := c.flags.check(c.records)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
