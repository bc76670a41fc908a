package inbound

import (
	"slices"
	"strings"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Directory says which tenant a message of a subscriber belongs to. It is immutable and made from
// the routing document.
type Directory struct {
	numbers  map[string]*owner // by number without plus
	channels map[string]*owner
	nobody   *owner // owns the numbers and channels that no tenant has
}

// owner is a tenant with the words that change its opt-out list.
type owner struct {
	tenant string
	words  map[string]ledger.Change
	// channels are those over which words of a number count; nil for all.
	channels []string
}

// NewDirectory compiles the part of a routing document about messages of subscribers.
func NewDirectory(in *config.Inbound) *Directory {
	d := &Directory{
		numbers: make(map[string]*owner, len(in.Numbers)), channels: make(map[string]*owner,
			len(in.Channels)),
		nobody: newOwner("", in.Keywords, in.Keywords),
	}
	for _, n := range in.Numbers {
		o := newOwner(n.Tenant, n.Keywords, in.Keywords)
		o.channels = n.Channels
		d.numbers[bare(n.Name)] = o
	}
	for _, c := range in.Channels {
		d.channels[c.Name] = newOwner(c.Tenant, c.Keywords, in.Keywords)
	}
	return d
}

// newOwner is a tenant with its own keywords if it has any, else with those of the document.
func newOwner(tenant string, own, document config.Keywords) *owner {
	if own.Stop == nil && own.Start == nil {
		own = document
	}
	o := &owner{tenant: tenant, words: make(map[string]ledger.Change, len(own.Stop)+len(own.Start))}
	for _, word := range own.Start {
		o.words[word] = ledger.OptIn
	}
	for _, word := range own.Stop {
		o.words[word] = ledger.OptOut
	}
	return o
}

// bare is a number without its plus, which some providers leave out.
func bare(number string) string { return strings.TrimLeft(strings.TrimSpace(number), "+") }

// owner is the owner of a message to a number on a channel. The number decides; if it has no owner,
// the channel does.
func (d *Directory) owner(channel, to string) *owner {
	if o := d.numbers[bare(to)]; o != nil {
		return o
	}
	if o := d.channels[channel]; o != nil {
		return o
	}
	return d.nobody
}

// change is the change of the opt-out list that a message asks for. A message with missing parts is
// no keyword. One without a sender changes nothing, nor does one over a channel that the number
// does not have: whoever owns that channel can write any sender and any number of ours.
func (o *owner) change(m *ledger.Subscribed) ledger.Change {
	if len(m.Missing) > 0 || m.From == "" || len(m.Text) > longestKeyword ||
		o.channels != nil && !slices.Contains(o.channels, m.Channel) {
		return ledger.NoChange
	}
	return o.words[config.Keyword(m.Text)]
}

// starts reports whether a message of one part would take its sender off an opt-out list.
func (d *Directory) starts(in *ledger.Inbound) bool {
	m := ledger.Subscribed{Channel: in.Channel, From: in.From, Text: in.Text}
	return in.Parts < 2 && d.owner(in.Channel, in.To).change(&m) == ledger.OptIn
}

// longestKeyword bounds the texts that are compared with keywords, in bytes, with the punctuation
// around them.
const longestKeyword = 400
