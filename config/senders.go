package config

import (
	"slices"

	"dispatcher/provider/sms"
)

// Senders says which sender ids a channel may carry. The zero value lets all pass.
type Senders struct {
	// Default is the sender of messages without one; empty means the adapter's own.
	Default string
	// Rules are checked in order; the first whose countries fit applies. A message that no rule fits
	// may have any sender.
	Rules []SenderRule
}

// SenderRule says which sender ids pass to some countries.
type SenderRule struct {
	Countries []string         // ISO 3166 in lower case; empty fits all
	Allow     []sms.SenderKind // kinds that pass unchanged
	IDs       []string         // ids that pass unchanged, whatever their kind
	// From replaces any other sender, and is the sender of messages without one. If it is empty, the
	// channel does not take a message whose sender does not pass.
	From string
}

// For is the sender that a channel puts on a message to a country; false when the channel may not
// carry the message's sender and has no replacement.
func (s *Senders) For(from, country string) (sender string, ok bool) {
	if from == "" {
		from = s.Default
	}
	for i := range s.Rules {
		r := &s.Rules[i]
		if len(r.Countries) == 0 || slices.Contains(r.Countries, country) {
			return r.apply(from)
		}
	}
	return from, true
}

func (r *SenderRule) apply(from string) (sender string, ok bool) {
	switch {
	case from == "":
		return r.From, true // the adapter or the carrier has its own sender
	case slices.Contains(r.IDs, from), slices.Contains(r.Allow, sms.KindOf(from)):
		return from, true
	}
	return r.From, r.From != ""
}

// ByCountry reports whether a rule depends on countries.
func (s *Senders) ByCountry() bool {
	return slices.ContainsFunc(s.Rules, func(r SenderRule) bool { return len(r.Countries) > 0 })
}

// Gives reports whether the channel puts this sender on messages without a sender, or in place of
// another. A number counts the same with and without its plus, as adapters treat it.
func (s *Senders) Gives(sender string) bool {
	same := func(own string) bool { return bare(own) == bare(sender) }
	return same(s.Default) || slices.ContainsFunc(s.Rules,
		func(r SenderRule) bool { return same(r.From) })
}

// readSenders reads {default, rules}.
func readSenders(v value) Senders {
	f, ok := v.fields(sendersPart)
	if !ok {
		return Senders{}
	}
	var s Senders
	if d, ok := f.get("default"); ok {
		s.Default = readSender(d)
	}
	rules, ok := f.get("rules")
	if !ok {
		return s
	}
	all := false
	for _, item := range rules.items() {
		f, ok := item.fields(senderRulePart)
		if !ok {
			continue
		}
		if all {
			item.fail("a rule above is for all countries, so this one is never used; " +
				"put that one last")
		}
		r := readSenderRule(f)
		all = all || len(r.Countries) == 0
		s.Rules = append(s.Rules, r)
	}
	return s
}

func readSenderRule(f fields) SenderRule {
	before := len(f.of.r.problems)
	r := SenderRule{
		Countries: readCountries(f, "countries", "country"),
		IDs:       readWords(f, "ids", "id", checkSender),
	}
	if v, ok := f.get("allow"); ok {
		r.Allow = readSenderKinds(v)
	}
	if v, ok := f.get("from"); ok {
		r.From = readSender(v)
	}
	if len(f.of.r.problems) == before && r.Allow == nil && r.IDs == nil && r.From == "" {
		f.of.fail("lets no sender pass and puts none in its place; write allow, ids or from, or " +
			"take the channel out of the routes to these countries")
	}
	return r
}

func readSenderKinds(v value) []sms.SenderKind {
	words := make([]string, 0, len(sms.SenderKinds()))
	for _, k := range sms.SenderKinds() {
		words = append(words, k.String())
	}
	var out []sms.SenderKind
	for _, item := range v.items() {
		if word, ok := item.word("kind of sender", words); ok {
			out = append(out, sms.SenderKinds()[slices.Index(words, word)])
		}
	}
	if len(out) == 0 && len(v.items()) == 0 {
		v.fail("is an empty list; write for example [alphanumeric] or remove the key")
	}
	return out
}

func readSender(v value) string {
	s, ok := v.text()
	if ok {
		checkSender(v, s)
	}
	return s
}

// checkSender does not repeat a wrong sender: it may be somebody's number.
func checkSender(v value, s string) bool {
	if kind := sms.KindOf(s); kind != sms.BadSender && kind != sms.NoSender {
		return true
	}
	v.fail(`is not a sender id; write a name of up to 11 characters of the GSM alphabet, a short ` +
		`code of 3 to 8 digits, or a number such as "+447700900123"`)
	return false
}
