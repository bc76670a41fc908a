package smpp

import (
	"errors"
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

// fault is a reason why a submission cannot be put on the wire, a bounded word that
// serves as Result.Code.
type fault string

// Error makes a fault an error; the words hold nothing of the message.
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
	faultCut         fault = "cut" // Parts are of another cut of the text
	faultEncoding    fault = "encoding"
)

// source is the address of a sender as the settings of the channel have it, its rules left out.
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

// derive gives a sender its type: an alphanumeric one is TON 5 NPI 0, a short code 3/0, a
// number 1/1, none 0/0.
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

// destination is always a number in E.164 form, sent without its plus unless a rule says otherwise.
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
