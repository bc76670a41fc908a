package smpp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// octet reads a number from 0 to 255; if absent, it is zero.
func octet(r *settings.Reader, key string) byte {
	if v := r.Octet(key); v != nil {
		return *v
	}
	return 0
}

// readOutcomes reads the overrides of the status table. Keys are codes in decimal or
// hexadecimal.
func readOutcomes(r *settings.Reader, key string) map[pdu.Status]StatusMeaning {
	entries := readMap(r, key, "not a map from status to outcome")
	if entries == nil {
		return nil
	}
	table := make(map[pdu.Status]StatusMeaning, len(entries))
	for code, word := range entries {
		status, err := strconv.ParseUint(code, 0, 32)
		if err != nil {
			r.Failf(key, "%q is not a command_status; write it as 0x00000410", code)
			continue
		}
		meaning, err := parseStatusMeaning(fmt.Sprint(word))
		if err != nil {
			r.Failf(key, "%s: %v", code, err)
			continue
		}
		table[pdu.Status(status)] = meaning
	}
	return table
}

// parseStatusMeaning takes the word of an outcome, or "unfit".
func parseStatusMeaning(word string) (StatusMeaning, error) {
	if word == "unfit" {
		return unfit, nil
	}
	outcome, err := provider.ParseOutcome(word)
	if err != nil {
		return StatusMeaning{}, fmt.Errorf("%w and unfit", err)
	}
	return StatusMeaning{Outcome: outcome}, nil
}

// readMeanings reads the meanings of a carrier's own receipts.
func readMeanings(r *settings.Reader, key string) ReceiptMeanings {
	entries := readMap(r, key, "not a map from the word of a receipt to what it means")
	if entries == nil {
		return nil
	}
	table := make(ReceiptMeanings, len(entries))
	for code, value := range entries {
		m, ok := meaningOf(fmt.Sprint(value))
		if !ok {
			r.Failf(key, "%s: %v is none of pending, delivered, undelivered and the causes %v",
				code, value, provider.Causes)
			continue
		}
		table[strings.ToUpper(code)] = m
	}
	return table
}

// meaningOf reads a state, or a cause, which implies Undelivered.
func meaningOf(word string) (ReceiptMeaning, bool) {
	for _, state := range []provider.ReceiptState{
		provider.Pending, provider.Delivered, provider.Undelivered,
	} {
		if state.String() == word {
			return ReceiptMeaning{State: state}, true
		}
	}
	if cause := provider.Cause(word); slices.Contains(provider.Causes, cause) {
		return ReceiptMeaning{State: provider.Undelivered, Cause: cause}, true
	}
	return ReceiptMeaning{}, false
}

// readLanguages takes the languages of national tables.
func readLanguages(r *settings.Reader, key string) (set sms.Languages) {
	for _, word := range r.Texts(key) {
		language, err := sms.ParseLanguage(word)
		switch {
		case err != nil:
			r.Fail(key, err)
		case key == "shift_locking" && !language.HasLocking():
			r.Failf(key, "%s has no locking table", language)
		}
		set |= sms.LanguagesOf(language)
	}
	return set
}

// readTag takes the number of an optional parameter, in decimal or hexadecimal.
func readTag(r *settings.Reader, key string) pdu.Tag {
	value, ok := r.Take(key)
	if !ok {
		return 0
	}
	tag, err := parseTag(fmt.Sprint(value))
	if err != nil {
		r.Fail(key, err)
	}
	return tag
}

func parseTag(word string) (pdu.Tag, error) {
	n, err := strconv.ParseUint(word, 0, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a tag of an optional parameter; write it as 0x1400", word)
	}
	return pdu.Tag(n), nil
}

// readTLVs reads optional parameters, in the order of their tags.
func readTLVs(r *settings.Reader, key string) pdu.TLVs {
	var list pdu.TLVs
	entries := readMap(r, key, "not a map from tag to value")
	for _, word := range slices.Sorted(maps.Keys(entries)) {
		tag, err := parseTag(word)
		if err != nil {
			r.Fail(key, err)
			continue
		}
		value, err := parseTLV(entries[word])
		if err != nil {
			r.Failf(key, "%s: %w", word, err)
			continue
		}
		list = append(list, pdu.TLV{Tag: tag, Value: value})
	}
	slices.SortStableFunc(list, func(a, b pdu.TLV) int { return int(a.Tag) - int(b.Tag) })
	return list
}

// parseTLV reads a value such as {text: acme}.
func parseTLV(value any) ([]byte, error) {
	entry, ok := settings.Map(value)
	if !ok || len(entry) != 1 {
		return nil, errors.New(
			"is not one of {text: …}, {cstring: …}, {hex: …}, {uint8: …}, {uint16: …} and {uint32: …}")
	}
	r := settings.New(entry, nil)
	var out []byte
	for form := range entry {
		switch form {
		case "text":
			out = []byte(r.Text(form))
		case "cstring":
			out = append([]byte(r.Text(form)), 0)
		case "hex":
			var err error
			if out, err = hex.DecodeString(r.Text(form)); err != nil {
				r.Failf(form, "is not a row of hexadecimal octets")
			}
		case "uint8":
			out = []byte{byte(r.Integer(form, 0, math.MaxUint8))}
		case "uint16":
			out = binary.BigEndian.AppendUint16(nil, uint16(r.Integer(form, 0, math.MaxUint16)))
		case "uint32":
			out = binary.BigEndian.AppendUint32(nil, uint32(r.Integer(form, 0, math.MaxUint32)))
		}
	}
	r.RefuseUnknown()
	return out, r.Err()
}

// readMap takes a map; nil when there is none.
func readMap(r *settings.Reader, key, fault string) map[string]any {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	entries, ok := settings.Map(value)
	if !ok {
		r.Failf(key, "is %s", fault)
	}
	return entries
}

// readSourceRules reads a list of rules for senders; see ParseSettings.
func readSourceRules(r *settings.Reader, key string) []SourceRule {
	return readRules(r, key, func(entry *settings.Reader) SourceRule {
		rule := SourceRule{
			To: beginnings(entry, "to"), From: entry.Text("from"), TON: entry.Octet("ton"),
			NPI: entry.Octet("npi"),
		}
		rule.Kind, rule.Sender = senderKind(entry.Text("sender"))
		return rule
	})
}

// readDestRules reads a list of rules for recipients.
func readDestRules(r *settings.Reader, key string) []DestRule {
	return readRules(r, key, func(entry *settings.Reader) DestRule {
		rule := DestRule{
			To: beginnings(entry, "to"), TON: entry.Octet("ton"), NPI: entry.Octet("npi"),
		}
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
		r.Failf(key, "is not a list of rules")
		return nil
	}
	rules := make([]T, 0, len(entries))
	for i, e := range entries {
		fields, ok := settings.Map(e)
		if !ok {
			r.Failf(key, "rule %d is not a map", i+1)
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
		"": AnySender, "any": AnySender, "none": NoSender, "alphanumeric": Alphanumeric,
		"short_code": ShortCode, "number": Number,
	}
	if kind, ok := kinds[word]; ok {
		return kind, ""
	}
	return NamedSender, word
}
