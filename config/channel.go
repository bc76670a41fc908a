package config

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
	"dispatcher/selector"
)

// Channel is one account or bind at a provider.
type Channel struct {
	Name     string
	Provider string
	// Settings are for the adapter, which checks them. Values are string, bool, int, float64, []any
	// and map[string]any.
	Settings map[string]any
	// Capacity is how many attempts in flight count as full load.
	Capacity int64
	Limits   []admission.Limit // of the channel, and of tenants and prefixes on it
	Active   ActiveLimit
	Receipts Receipts
	// Policy divides the slots of those Limits that count all of the channel's messages among regions
	// and processes; nil is policy exact, which divides nothing.
	Policy admission.Policy
	State  ChannelState
	Labels map[string]selector.Value
	Price  Price
	// Contract is what was agreed for each month.
	Contract Contract
	// Senders says which sender ids it may carry.
	Senders Senders
	// Test marks a channel that reaches no subscriber.
	Test bool
}

// ChannelState says whether a channel takes messages.
type ChannelState string

const (
	// Enabled takes messages.
	Enabled ChannelState = "enabled"
	// Draining takes no new message but finishes what it has.
	Draining ChannelState = "draining"
	// Disabled takes nothing.
	Disabled ChannelState = "disabled"
)

// Takes reports whether the channel takes messages. A channel without a state is enabled.
func (s ChannelState) Takes() bool { return s == Enabled || s == "" }

func readChannels(top fields, isLane nameCheck, zone *time.Location) []Channel {
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
		out = append(out, readChannel(e, isLane, zone))
	}
	return out
}

func readChannel(e entry, isLane nameCheck, zone *time.Location) Channel {
	c := Channel{
		Name: e.name, Capacity: defaultCapacity, State: Enabled,
		Active: ActiveLimit{Until: untilSubmit},
	}
	f, ok := e.value.fields(channelPart)
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
		c.Capacity = v.integer(1, math.MaxInt32)
	}
	if v, ok := f.get("price"); ok { // before limits in money, which use its currency
		c.Price = readPrice(v, zone)
	}
	if v, ok := f.get("contract"); ok {
		c.Contract = readContract(v, &c)
	}
	if v, ok := f.get("senders"); ok {
		c.Senders = readSenders(v)
	}
	before := len(e.value.r.problems)
	if v, ok := f.get("limits"); ok {
		c.Limits = readLimits(v, limitContext{channel: &c, isLane: isLane})
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

// Receipts says whether receipts of a channel are expected. The zero value is that of a document
// that does not mention them: they are expected if the channel gets any.
type Receipts struct {
	// None means that no receipts are expected: accepted messages stay accepted.
	None bool
	// Within is how long after acceptance a receipt is waited for; after that the result stays
	// unknown. 0 is DefaultReceiptsWithin.
	Within time.Duration
}

// DefaultReceiptsWithin is how long most providers try to deliver.
const DefaultReceiptsWithin = 72 * time.Hour

// longestWithin is longer than any provider tries to deliver.
const longestWithin = 30 * day

// Wait is how long receipts are waited for; 0 when none are expected.
func (r Receipts) Wait() time.Duration {
	switch {
	case r.None:
		return 0
	case r.Within == 0:
		return DefaultReceiptsWithin
	}
	return r.Within
}

// noReceipts is the word of the document for a channel without receipts.
const noReceipts = "none"

// readReceipts reads none, or a mapping with within.
func readReceipts(v value, active ActiveLimit) (r Receipts) {
	if v.node.Kind == yaml.ScalarNode {
		_, r.None = v.word("receipts", []string{noReceipts})
		if r.None && active.Until == untilReceipt {
			v.fail("the slots of this channel are held until the receipt; leave this out, or " +
				"write active.until: submit")
		}
		return r
	}
	f, ok := v.fields(receiptsPart)
	if !ok {
		return r
	}
	if within, ok := f.need("within", "within: 72h"); ok {
		r.Within, _ = within.duration(time.Second, longestWithin)
	}
	return r
}

// secretKey finds settings that would put a secret into the document.
var secretKey = regexp.MustCompile(`(?i)(password|passphrase|secret|token|api_?key|private_?key)$`)

// exemption lists settings of one kind of provider that look like secrets but are not.
type exemption struct {
	// account is the key of the account's name.
	account string
	// files is a key whose members map names of secrets to their files.
	files string
	// placeholders says that a value may be a placeholder for a secret that is filled in on use.
	placeholders bool
}

var exempt = map[string]exemption{
	"vonage":  {account: "api_key"},
	"httpapi": {files: "secrets", placeholders: true},
}

// refuseSecrets reports every secret in a channel's settings, at any depth.
func refuseSecrets(v value, e exemption) {
	switch v.node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			name := v.node.Content[i].Value
			child := v.child(name, v.node.Content[i+1])
			if e.files != "" && name == e.files && child.node.Kind == yaml.MappingNode {
				continue
			}
			harmless := name == e.account || e.placeholders && isPlaceholder(child.node)
			if secretKey.MatchString(name) && !harmless {
				child.fail("secrets do not belong in this document; write the secret into a "+
					"file and its path as %s_file", name)
			}
			refuseSecrets(child, exemption{placeholders: e.placeholders})
		}
	case yaml.SequenceNode:
		for _, item := range v.items() {
			refuseSecrets(item, exemption{placeholders: e.placeholders})
		}
	case yaml.ScalarNode, yaml.AliasNode, yaml.DocumentNode:
	}
}

// isPlaceholder reports whether a text is or contains a placeholder for a secret.
func isPlaceholder(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (strings.Contains(node.Value,
		"{secret:") || node.Value == "{callback_secret}")
}

// NameKey is the key of a selector that is compared with the name of a channel, so that a message
// can ask for one channel. A label of the channel with this key takes precedence.
const NameKey = "channel"

// Closing is the limit of 0 that closes the channel; nil when there is none.
func (c *Channel) Closing() *admission.Limit {
	for i := range c.Limits {
		if l := &c.Limits[i]; l.Closed() && l.Scope == (admission.Scope{}) {
			return l
		}
	}
	return nil
}

// Meets reports whether the channel meets a selector.
func (c *Channel) Meets(s selector.Selector) bool {
	if _, own := c.Labels[NameKey]; s.Key != NameKey || own {
		return s.Satisfied(c.Labels)
	}
	return s.Satisfied(map[string]selector.Value{NameKey: selector.TextValue(c.Name)})
}

// MeetsAll reports whether the channel meets every selector.
func (c *Channel) MeetsAll(selectors []selector.Selector) bool {
	return !slices.ContainsFunc(selectors, func(s selector.Selector) bool { return !c.Meets(s) })
}
