package config_test

import (
	"testing"

	"dispatcher/config"
	"dispatcher/selector"
)

// TestASelectorMayNameAChannel unless the channel has a label with that key: the label has
// priority.
func TestASelectorMayNameAChannel(t *testing.T) {
	t.Parallel()
	text := selector.TextValue
	named := func(o selector.Operator, value string) selector.Selector {
		return selector.Selector{Key: config.NameKey, Operator: o, Value: text(value)}
	}
	gold := selector.Selector{Key: "tier", Operator: selector.Equal, Value: text("gold")}
	plain := config.Channel{Name: "a", Labels: map[string]selector.Value{"tier": text("gold")}}
	labelled := config.Channel{Name: "a", Labels: map[string]selector.Value{"channel": text("retail")}}
	for name, c := range map[string]struct {
		channel   config.Channel
		selectors []selector.Selector
		want      bool
	}{
		"none":                      {plain, nil, true},
		"its name":                  {plain, []selector.Selector{named(selector.Equal, "a")}, true},
		"another name":              {plain, []selector.Selector{named(selector.Equal, "b")}, false},
		"not its name":              {plain, []selector.Selector{named(selector.NotEqual, "a")}, false},
		"its name and a label":      {plain, []selector.Selector{gold, named(selector.Equal, "a")}, true},
		"its name, without a label": {labelled, []selector.Selector{gold}, false},
		"its own label":             {labelled, []selector.Selector{named(selector.Equal, "retail")}, true},
		"its name under a label":    {labelled, []selector.Selector{named(selector.Equal, "a")}, false},
	} {
		if got := c.channel.MeetsAll(c.selectors); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
