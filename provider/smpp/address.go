package smpp

import (
	"errors"
	"fmt"
	"strings"

	"dispatcher/provider/smpp/pdu"
)

// Types of number and numbering plans that addresses are sent with (sections 5.2.5
// and 5.2.6).
const (
	tonUnknown, tonInternational, tonNetwork, tonAlphanumeric byte = 0, 1, 3, 5
	npiUnknown, npiISDN                                       byte = 0, 1
)

const (
	// maxDigits is the longest number that fits destination_addr and source_addr.
	maxDigits = 20
	// maxShortCode separates short codes from numbers that were written without plus.
	maxShortCode = 8
	// maxSender is the longest alphanumeric sender that handsets show (3GPP TS 23.040
	// section 9.1.2.5: 11 characters of 7 bits).
	maxSender = 11
)

// fault is why a submission cannot be encoded; its bounded word is the Result.Code.
type fault string

// Error makes a fault an error. The words contain nothing of the message.
func (f fault) Error() string { return "submission not encodable: " + string(f) }

// codeOf returns the word of a fault.
func codeOf(err error) string {
	if f, ok := errors.AsType[fault](err); ok {
		return string(f)
	}
	return string(faultEncoding)
}

const (
	faultDestination fault = "destination"
	faultSource      fault = "source"
	faultTooLong     fault = "too_long"
	faultExpired     fault = "expired"
	faultParts       fault = "parts"
	faultCut         fault = "cut" // Parts belong to another split of the text
	faultEncoding    fault = "encoding"
)

// source is the address of a sender without the rules of the channel.
func (c *Config) source(from string) (pdu.Address, error) {
	if from == "" {
		from = c.From
	}
	a, err := derive(from)
	if err != nil {
		return pdu.Address{}, err
	}
	override(&a, c.SourceTON, c.SourceNPI)
	return a, nil
}

// derive types a sender: alphanumeric is TON 5 NPI 0, a short code 3/0, a number 1/1, none 0/0.
func derive(from string) (pdu.Address, error) {
	a := pdu.Address{Addr: from}
	number := strings.TrimPrefix(from, "+")
	switch {
	case from == "":
	case !allDigits(number):
		if len(from) > maxSender || !printableASCII(from) {
			return pdu.Address{}, faultSource
		}
		a.TON, a.NPI = tonAlphanumeric, npiUnknown
	case len(number) > maxDigits:
		return pdu.Address{}, faultSource
	case number != from || len(number) > maxShortCode:
		a = pdu.Address{TON: tonInternational, NPI: npiISDN, Addr: number}
	default:
		a.TON, a.NPI = tonNetwork, npiUnknown
	}
	return a, nil
}

// destination is always an E.164 number, sent without plus unless a rule says otherwise.
func (c *Config) destination(to string) (pdu.Address, error) {
	number := strings.TrimPrefix(to, "+")
	if !allDigits(number) || len(number) > maxDigits {
		return pdu.Address{}, faultDestination
	}
	a := pdu.Address{TON: tonInternational, NPI: npiISDN, Addr: number}
	override(&a, c.DestTON, c.DestNPI)
	for i := range c.DestRules {
		if prefix, ok := startsWith(number, c.DestRules[i].To); ok {
			return c.DestRules[i].apply(a, prefix)
		}
	}
	return a, nil
}

func override(a *pdu.Address, ton, npi *byte) {
	if ton != nil {
		a.TON = *ton
	}
	if npi != nil {
		a.NPI = *npi
	}
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// SenderKind is a class of senders that a rule applies to.
type SenderKind uint8

const (
	// AnySender matches every message, even one without a sender.
	AnySender SenderKind = iota
	// NoSender matches a message without a sender, on a channel without a default.
	NoSender
	// Alphanumeric is a name.
	Alphanumeric
	// ShortCode is a number of up to eight digits without plus.
	ShortCode
	// Number is any longer number, and any with a plus.
	Number
	// NamedSender is the one in SourceRule.Sender.
	NamedSender
)

// SourceRule says how senders are written, by sender and recipient. The first rule that matches
// applies.
type SourceRule struct {
	// To are the leading digits of recipients, such as a country code; empty matches every
	// recipient.
	To []string
	// Kind and Sender select senders. Sender is exact, or a prefix if it ends in "*".
	Kind   SenderKind
	Sender string
	// From replaces the sender; empty keeps it.
	From string
	// TON and NPI are sent with it; nil derives them from the sender that is sent, as without the
	// rule.
	TON, NPI *byte
}

// DestRule says how recipients are written. The first rule that matches applies.
type DestRule struct {
	// To are the leading digits of recipients; empty matches every recipient.
	To []string
	// Replace, if not nil, replaces those digits: "0" turns the numbers of a country into national
	// ones.
	Replace *string
	// TON and NPI are sent with the number; nil uses those of the channel.
	TON, NPI *byte
}

// sourceRule is the rule for a sender and a recipient; nil if none matches.
func (c *Config) sourceRule(from, to string) *SourceRule {
	if from == "" {
		from = c.From
	}
	to = strings.TrimPrefix(to, "+")
	for i := range c.SourceRules {
		r := &c.SourceRules[i]
		if _, ok := startsWith(to, r.To); ok && r.fits(from) {
			return r
		}
	}
	return nil
}

// sourceBy is the source address as a rule (or nil) writes it.
func (c *Config) sourceBy(r *SourceRule, from string) (pdu.Address, error) {
	if r == nil {
		return c.source(from)
	}
	if r.From != "" {
		from = r.From
	}
	a, err := c.source(from)
	override(&a, r.TON, r.NPI)
	return a, err
}

// Writes reports whether the channel can write a sender, empty for none, on a message to a number.
// It cannot write names with characters outside of ASCII.
func (c *Config) Writes(from, to string) bool {
	_, err := c.sourceBy(c.sourceRule(from, to), from)
	return err == nil
}

// fits reports whether the rule applies to that sender.
func (r *SourceRule) fits(from string) bool {
	switch r.Kind {
	case AnySender:
		return true
	case NamedSender:
		if beginning, ok := strings.CutSuffix(r.Sender, "*"); ok {
			return strings.HasPrefix(from, beginning)
		}
		return from == r.Sender
	case NoSender, Alphanumeric, ShortCode, Number:
	}
	return r.Kind == kindOf(from)
}

func kindOf(from string) SenderKind {
	number := strings.TrimPrefix(from, "+")
	switch {
	case from == "":
		return NoSender
	case !allDigits(number):
		return Alphanumeric
	case number != from || len(number) > maxShortCode:
		return Number
	}
	return ShortCode
}

// apply writes an address, which begins with the digits, as the rule says.
func (r *DestRule) apply(a pdu.Address, digits string) (pdu.Address, error) {
	if r.Replace != nil {
		a.Addr = *r.Replace + a.Addr[len(digits):]
		if len(a.Addr) > maxDigits || a.Addr == "" {
			return pdu.Address{}, faultDestination
		}
	}
	override(&a, r.TON, r.NPI)
	return a, nil
}

// startsWith returns which of the prefixes a number has. With an empty list every number matches,
// and digits is empty.
func startsWith(number string, beginnings []string) (digits string, ok bool) {
	for _, digits := range beginnings {
		if strings.HasPrefix(number, digits) {
			return digits, true
		}
	}
	return "", len(beginnings) == 0
}

// validateRules reports rules that cannot work, each with its position in the list, from 1.
func (c Config) validateRules() error {
	var faults []error
	for i, r := range c.SourceRules {
		err := validateDigits(r.To)
		if r.From != "" && err == nil {
			_, err = derive(r.From)
		}
		if err == nil && (r.Kind > NamedSender || r.Kind == NamedSender && r.Sender == "") {
			err = errors.New("has no sender to be for")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("source_rules: rule %d: %w", i+1, err))
		}
	}
	for i, r := range c.DestRules {
		err := validateDigits(r.To)
		if err == nil && r.Replace != nil && strings.Trim(*r.Replace, "+0123456789") != "" {
			err = errors.New("replace: is not the beginning of a number")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("dest_rules: rule %d: %w", i+1, err))
		}
	}
	return errors.Join(faults...)
}

func validateDigits(beginnings []string) error {
	for _, digits := range beginnings {
		if !allDigits(digits) {
			return fmt.Errorf("to: %q is not the beginning of a number", digits)
		}
	}
	return nil
}
