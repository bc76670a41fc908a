package bird

import (
	"strings"

	"dispatcher/provider"
)

// stateOf reads a status of either API. What is not listed is Pending: no word that nobody
// knows ends a message.
func stateOf(status string) provider.ReceiptState {
	switch status {
	case "delivered", "read":
		return provider.Delivered
	case "delivery_failed", "sending_failed", "rejected", "expired", "failed", "deleted":
		return provider.Undelivered
	}
	return provider.Pending
}

// unreported is the reason that Bird gives when the operator said nothing until the validity ended. The message may
// have arrived, so it is no end.
const unreported = "dlr not received"

// reasons are Bird's words for why a message was not delivered.
var reasons = map[string]provider.Cause{
	"unknown subscriber":     provider.UnknownNumber,
	"incorrect number":       provider.UnknownNumber,
	"unavailable subscriber": provider.Absent,
	"expired":                provider.Expired,
	"opted out":              provider.OptedOut,
	"received network error": provider.NetworkError,
	"system failure":         provider.NetworkError,
	"insufficient balance":   provider.NoCredit,
	"carrier rejected":       provider.Blocked,
}

// codes are the extended error codes of Bird's SMS platform: statusErrorCode, or failure.source.code.
var codes = map[string]provider.Cause{
	"1": provider.UnknownNumber, "2": provider.UnknownNumber, "3": provider.UnknownNumber, "5": provider.UnknownNumber,
	"6": provider.Absent, "27": provider.Absent, "31": provider.Absent,
	"9": provider.Blocked, "12": provider.Blocked, "13": provider.Blocked,
	"11": provider.NotMobile, "21": provider.NotMobile,
	"34":  provider.NetworkError,
	"103": provider.OptedOut,
	"104": provider.BadSender,
}

// describe makes a receipt of a status, its reason and its error code.
func describe(status, reason, code string) provider.Receipt {
	r := provider.Receipt{State: stateOf(status), Code: "other"}
	if word(status) {
		r.Code = status
	}
	if code != "" && code != "0" && len(code) <= 6 && word(code) {
		r.Code += "/" + code
	}
	reason = plainReason(reason)
	if r.State == provider.Undelivered && reason == unreported {
		r.State = provider.Pending
	}
	if r.State == provider.Undelivered {
		r.Cause = causeOf(status, reason, code)
	}
	return r
}

// plainReason makes one of Bird's words of a reason. The Channels API writes "details: WORD; reason: ...; code: 34".
func plainReason(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(text)), ";")
	text = strings.TrimSpace(strings.TrimPrefix(text, "details:"))
	return strings.ReplaceAll(text, "_", " ")
}

// causeOf looks at the most exact word first.
func causeOf(status, reason, code string) provider.Cause {
	if cause, known := codes[code]; known {
		return cause
	}
	if cause, known := reasons[reason]; known {
		return cause
	}
	switch status {
	case "expired":
		return provider.Expired
	case "deleted":
		return provider.Deleted
	}
	return provider.Unspecified
}
