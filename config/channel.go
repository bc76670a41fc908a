package config

import (
	"math"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

func readChannels(top fields) []Channel {
	v, ok := top.need("channels", "channels: {a: {provider: sandbox}}")
	if !ok {
		return nil
	}
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		v.fail("there is no channel; write for example a: {provider: sandbox}")
	}
	var out []Channel
	for _, e := range entries {
		e.value.checkName("channel", e.name)
		out = append(out, readChannel(e))
	}
	return out
}

func readChannel(e entry) Channel {
	c := Channel{Name: e.name, Capacity: defaultCapacity, State: Enabled, Active: ActiveLimit{Until: untils[0]}}
	f, ok := e.value.fields("provider", "settings", "capacity", "limits", "active", "state", "labels", "price", "test")
	if !ok {
		return c
	}
	if v, ok := f.need("provider", "provider: sandbox"); ok {
		c.Provider, _ = v.word("provider", providers)
	}
	if v, ok := f.get("settings"); ok {
		c.Settings = readSettings(v)
	}
	if v, ok := f.get("capacity"); ok {
		c.Capacity, _ = v.integer(1, math.MaxInt32)
	}
	if v, ok := f.get("limits"); ok {
		c.Limits = readLimits(v)
	}
	if v, ok := f.get("active"); ok {
		c.Active = readActive(v)
	}
	if v, ok := f.get("state"); ok {
		word, _ := v.word("state", states)
		c.State = State(word)
	}
	if v, ok := f.get("labels"); ok {
		c.Labels = v.labels()
	}
	if v, ok := f.get("price"); ok {
		c.Price = readPrice(v)
	}
	if v, ok := f.get("test"); ok {
		c.Test = v.flag()
	}
	return c
}

// secretKey finds settings that would put a secret into the document.
var secretKey = regexp.MustCompile(`(?i)(password|passphrase|secret|token|api_?key|private_?key)$`)

// readSettings takes the settings as they are, for the adapter to check. Secrets are
// refused: the document is stored with every version and shown to auditors.
func readSettings(v value) map[string]any {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	refuseSecrets(v)
	out := make(map[string]any, len(entries))
	for _, e := range entries {
		var plain any
		if err := e.value.node.Decode(&plain); err != nil {
			e.value.fail("cannot be read; write plain texts, numbers, lists and mappings")
			continue
		}
		out[e.name] = plain
	}
	return out
}

func refuseSecrets(v value) {
	switch v.node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			child := v.child(v.node.Content[i].Value, v.node.Content[i+1])
			if name := v.node.Content[i].Value; secretKey.MatchString(name) {
				child.fail("secrets do not belong in this document; write the secret into a file and its path as %s_file", name)
			}
			refuseSecrets(child)
		}
	case yaml.SequenceNode:
		for _, item := range v.items() {
			refuseSecrets(item)
		}
	case yaml.ScalarNode, yaml.AliasNode, yaml.DocumentNode:
	}
}

func readLimits(v value) []admission.Limit {
	var out []admission.Limit
	for _, item := range v.items() {
		f, ok := item.fields("window", "max", "unit")
		if !ok {
			continue
		}
		l, ok := readLimit(f)
		if !ok {
			continue
		}
		if slices.ContainsFunc(out, func(o admission.Limit) bool { return o.Window == l.Window && o.Unit == l.Unit }) {
			item.fail("there is already a limit of %s per %s; keep the lower one", l.Unit, l.Window)
			continue
		}
		out = append(out, l)
	}
	return out
}

func readLimit(f fields) (l admission.Limit, ok bool) {
	window, hasWindow := f.need("window", "window: 1s")
	most, hasMax := f.need("max", "max: 100")
	if !hasWindow || !hasMax {
		return l, false
	}
	ok = true
	if s, isText := window.raw("one of 1s, 1m, 1h, 1d"); isText {
		var err error
		if l.Window, err = admission.ParseWindow(s); err != nil {
			window.fail("%v", err)
			ok = false
		}
	} else {
		ok = false
	}
	if v, has := f.get("unit"); has {
		s, _ := v.raw("messages or segments")
		var err error
		if l.Unit, err = admission.ParseUnit(s); err != nil {
			v.fail("%v", err)
			ok = false
		}
	}
	n, isNumber := most.integer(1, math.MaxInt32*1000)
	l.Max = n
	return l, ok && isNumber
}

func readActive(v value) ActiveLimit {
	a := ActiveLimit{Until: untils[0]}
	f, ok := v.fields("max", "until")
	if !ok {
		return a
	}
	if most, ok := f.need("max", "max: 500"); ok {
		a.Max, _ = most.integer(1, math.MaxInt32)
	}
	if until, ok := f.get("until"); ok {
		a.Until, _ = until.word("until", untils)
	}
	return a
}
