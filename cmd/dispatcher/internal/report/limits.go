package report

import (
	"slices"
	"strconv"

	"dispatcher/admission"
	"dispatcher/config"
)

// limitsOn are the limits of a channel, or those over all channels for the empty name.
func limitsOn(doc *config.Routing, channel string) []admission.Limit {
	if doc == nil {
		return nil
	}
	if channel == "" {
		return doc.Limits
	}
	if ch := channelNamed(doc, channel); ch != nil {
		return ch.Limits
	}
	return nil
}

// limitOn finds a limit; nil when the document is not known or has none like it.
func limitOn(doc *config.Routing, channel string, key admission.Key) *admission.Limit {
	limits := limitsOn(doc, channel)
	at := slices.IndexFunc(limits, func(l admission.Limit) bool { return l.Key() == key })
	if at < 0 {
		return nil
	}
	return &limits[at]
}

func channelNamed(doc *config.Routing, name string) *config.Channel {
	if doc == nil {
		return nil
	}
	at := slices.IndexFunc(doc.Channels, func(c config.Channel) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &doc.Channels[at]
}

// amount is so many units of a limit: "0.50 GBP", "100 messages".
func amount(l *admission.Limit, units int64) string {
	switch {
	case l.Unit == admission.Money:
		return Money(units) + " " + l.Currency
	case units == 1 && l.Unit == admission.Segments:
		return "1 segment"
	case units == 1:
		return "1 message"
	}
	return strconv.FormatInt(units, 10) + " " + l.Unit.String()
}

// limitWords is such as "the limit of messages per second on alpha".
func limitWords(channel string, key admission.Key) string {
	return "the " + limitNoun(key) + whose(channel, key.Scope)
}

// limitNoun is such as "limit of messages per second".
func limitNoun(key admission.Key) string {
	return "limit of " + key.Unit.String() + " per " + windowWords[key.Window]
}

// whose says what a limit counts, and where: " on alpha", " of tenant shop over all channels".
func whose(channel string, scope admission.Scope) string {
	if scope == (admission.Scope{}) {
		return where(channel)
	}
	return " of " + scopeWords(scope, where(channel))
}

func where(channel string) string {
	if channel == "" {
		return " over all channels"
	}
	return " on " + channel
}

// shutWords says that a limit of 0 closes a channel, or all, to those whom it counts.
func shutWords(channel string, key admission.Key) string {
	doors := channel + " is closed"
	if channel == "" {
		doors = "all channels are closed"
	}
	if key.Scope == (admission.Scope{}) {
		return doors + " (its " + limitNoun(key) + " is 0)"
	}
	return doors + " to " + scopeWords(key.Scope, "") + " (the " + limitNoun(key) + " is 0)"
}

var windowWords = map[admission.Window]string{
	admission.Second: "second", admission.Minute: "minute", admission.Hour: "hour", admission.Day: "day",
}

func scopeWords(s admission.Scope, where string) string {
	switch {
	case s.Tenant != "":
		return "tenant " + s.Tenant + where
	case s.Prefix != "":
		return "numbers that begin with " + s.Prefix + where
	}
	return s.String() + where
}
