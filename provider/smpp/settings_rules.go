package smpp

import (
	"fmt"
	"strings"

	"dispatcher/provider/settings"
)

// readSourceRules reads a list of rules for senders; see ParseSettings.
func readSourceRules(r *settings.Reader, key string) []SourceRule {
	return readRules(r, key, func(entry *settings.Reader) SourceRule {
		rule := SourceRule{
			To: beginnings(entry, "to"), From: entry.Text("from"), TON: entry.Octet("ton"), NPI: entry.Octet("npi"),
		}
		rule.Kind, rule.Sender = senderKind(entry.Text("sender"))
		return rule
	})
}

// readDestRules reads a list of rules for recipients.
func readDestRules(r *settings.Reader, key string) []DestRule {
	return readRules(r, key, func(entry *settings.Reader) DestRule {
		rule := DestRule{To: beginnings(entry, "to"), TON: entry.Octet("ton"), NPI: entry.Octet("npi")}
		if _, ok := entry.Take("replace"); ok {
			replace := entry.Text("replace")
			rule.Replace = &replace
		}
		return rule
	})
}

// readRules reads each entry of a list by itself, so that its faults name it.
func readRules[T any](r *settings.Reader, key string, read func(*settings.Reader) T) []T {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	entries, ok := value.([]any)
	if !ok {
		r.Failf(key, "is no list of rules")
		return nil
	}
	rules := make([]T, 0, len(entries))
	for i, e := range entries {
		fields, ok := settings.Map(e)
		if !ok {
			r.Failf(key, "rule %d is no map", i+1)
			continue
		}
		entry := settings.New(fields, nil)
		rules = append(rules, read(entry))
		entry.RefuseUnknown()
		if err := entry.Err(); err != nil {
			r.Fail(key, fmt.Errorf("rule %d: %w", i+1, err))
		}
	}
	return rules
}

// beginnings takes leading digits of numbers, with or without plus and quotes.
func beginnings(r *settings.Reader, key string) []string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	out := make([]string, 0, len(list))
	for _, entry := range list {
		out = append(out, strings.TrimPrefix(fmt.Sprint(entry), "+"))
	}
	return out
}

// senderKind reads which senders a rule is for.
func senderKind(word string) (SenderKind, string) {
	kinds := map[string]SenderKind{
		"": AnySender, "any": AnySender, "none": NoSender, "alphanumeric": Alphanumeric, "short_code": ShortCode, "number": Number,
	}
	if kind, ok := kinds[word]; ok {
		return kind, ""
	}
	return NamedSender, word
}
