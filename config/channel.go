package config

import (
	"math"
	"time"
)

func readChannels(top fields, lanes []string, zone *time.Location) []Channel {
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
		out = append(out, readChannel(e, lanes, zone))
	}
	return out
}

func readChannel(e entry, lanes []string, zone *time.Location) Channel {
	c := Channel{Name: e.name, Capacity: defaultCapacity, State: Enabled, Active: ActiveLimit{Until: untilSubmit}}
	f, ok := e.value.fields("provider", "settings", "capacity", "limits", "admission", "active", "receipts", "state", "labels", "price", "senders", "test")
	if !ok {
		return c
	}
	if v, ok := f.need("provider", "provider: sandbox"); ok {
		c.Provider, _ = v.word("provider", providers)
	}
	if v, ok := f.get("settings"); ok {
		c.Settings = readSettings(v, c.Provider)
	}
	if v, ok := f.get("capacity"); ok {
		c.Capacity, _ = v.integer(1, math.MaxInt32)
	}
	if v, ok := f.get("price"); ok { // before limits in money, which are in its currency
		c.Price = readPrice(v, zone)
	}
	if v, ok := f.get("senders"); ok {
		c.Senders = readSenders(v)
	}
	before := len(e.value.r.problems)
	if v, ok := f.get("limits"); ok {
		c.Limits = readLimits(v, limitContext{channel: &c, lanes: lanes})
	}
	if v, ok := f.get("admission"); ok {
		c.Policy = readPolicy(v)
		if len(e.value.r.problems) == before {
			checkPolicy(v, &c)
		}
	}
	if v, ok := f.get("active"); ok {
		c.Active = readActive(v)
	}
	if v, ok := f.get("receipts"); ok {
		c.Receipts = readReceipts(v, c.Active)
	}
	if v, ok := f.get("state"); ok {
		c.State, _ = wordOf(v, "state", states)
	}
	if v, ok := f.get("labels"); ok {
		c.Labels = v.labels()
	}
	if v, ok := f.get("test"); ok {
		c.Test = v.flag()
	}
	return c
}

// readSettings takes the settings as they are, for the adapter to check. Secrets are
// refused: the document is stored with every version and shown to auditors.
func readSettings(v value, provider string) map[string]any {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	refuseSecrets(v, exempt[provider])
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
