package report

import (
	"strconv"
	"strings"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
)

// limitOn finds a limit; nil when the document is not known or does not have it.
func limitOn(doc *config.Routing, channel string, key admission.Key) *admission.Limit {
	l, ok := admission.Find(doc.LimitsOf(channel), key)
	if !ok {
		return nil
	}
	return &l
}

// maximum writes the maximum of a limit: "0.50 GBP", "100 messages".
func maximum(l *admission.Limit) string {
	switch {
	case l.Unit == admission.Money:
		return Amount(l.Max, l.Currency)
	case l.Max == 1 && l.Unit == admission.Segments:
		return "1 segment"
	case l.Max == 1:
		return "1 message"
	}
	return strconv.FormatInt(l.Max, 10) + " " + l.Unit.String()
}

// windowWords name a window, without and with an article.
var windowWords = map[admission.Window]struct{ noun, article string }{
	admission.Second: {"second", "a second"}, admission.Minute: {"minute", "a minute"},
	admission.Hour: {"hour", "an hour"}, admission.Day: {"day", "a day"},
}

// kindOfLimit says what a limit counts, as in "limit of messages per second".
func kindOfLimit(key admission.Key) string {
	if key.Window == admission.Prepaid {
		return "prepaid budget"
	}
	return "limit of " + key.Unit.String() + " per " + windowWords[key.Window].noun
}

// limitWords names a limit, as in "the limit of messages per second on alpha".
func limitWords(channel string, key admission.Key) string {
	return "the " + kindOfLimit(key) + covered(channel, key.Scope)
}

// covered says what a limit counts, and where: " on alpha", " of tenant shop over all channels".
func covered(channel string, scope admission.Scope) string {
	where := " on " + channel
	if channel == "" {
		where = " over all channels"
	}
	if scope == (admission.Scope{}) {
		return where
	}
	return " of " + scopeWords(scope) + where
}

func scopeWords(s admission.Scope) string {
	switch {
	case s.Each():
		return "each tenant"
	case s.Tenant != "":
		return "tenant " + s.Tenant
	case s.Prefix != "":
		return "numbers that begin with " + s.Prefix
	}
	return s.String()
}

// stored is a cause as figures and files write it, with the limit: no_slot:1d:messages. limit is in
// the words of admission.Key.On.
func stored(word, limit string) string {
	channel, key, ok := admission.ParseOn(limit)
	if !ok {
		return word
	}
	return decide.StoredReason(word, decide.LimitName{Key: key, Over: channel == ""})
}

// Stored is the cause with its limit, as figures have it: no_slot:1d:messages.
func (m *Move) Stored() string { return stored(m.Cause, m.Limit) }

// Stored is the cause with its limit, as figures have it.
func (s *WaterfallStep) Stored() string { return stored(s.Cause, s.Limit) }

// Words are the cause in a few words, with the limit if one is named: "no slot (1d messages)".
func (s *WaterfallStep) Words() string {
	words := strings.ReplaceAll(s.Cause, "_", " ")
	if _, key, ok := admission.ParseOn(s.Limit); ok {
		words += " (" + key.On("") + ")"
	}
	return words
}

// limitExclusion says why a limit excluded a channel. limit names it as admission.Key.On; doc is
// the document that has it, nil when that is not known.
func limitExclusion(doc *config.Routing, reason, limit string) string {
	channel, key, ok := admission.ParseOn(limit)
	if !ok {
		return exclusion(reason)
	}
	name := kindOfLimit(key)
	if l := limitOn(doc, channel, key); l != nil && key.Window != admission.Prepaid {
		name = "limit of " + maximum(l) + " " + windowWords[key.Window].article
	}
	if channel != "" && key.Scope == (admission.Scope{}) {
		name = "its " + name
	} else {
		name = "the " + name + covered(channel, key.Scope)
	}
	switch reason {
	case lackReserved:
		return "the rest of " + name + " kept for other lanes"
	case lackNoShare:
		return name + ": no slots left to the process by the admission policy"
	case "no_budget":
		return name + " spent"
	}
	return name + " used up"
}
