package bird

import (
	"net/http"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Errors for Bird's answers. Bird's own texts may contain the number.
var (
	badRecipient = web.Rejected("the provider finds fault with the recipient")
	badRequest   = web.Refused("the provider does not take such a request from this channel")
	badSender    = web.BadSender("the provider does not take such a sender")
	badText      = web.Unfit("the provider does not take such a text")
	badKey       = web.Refused("the provider does not take the access key")
	noCredit     = web.Refused("the account has no credit")
	tooFast      = web.Throttled("the provider asks to slow down")
	uncertain    = web.Unknown("the provider's answer says neither yes nor no")
)

// Error codes of the REST API.
const (
	codeNotAllowed = 2
	codeMissing    = 9
	codeInvalid    = 10
	codeNotFound   = 20
	codeBadRequest = 21
	codeNoBalance  = 25
	codeNoSuchAPI  = 98
)

// byCode reads an error of the REST API. parameter names the field at fault. Another provider may
// accept a body that Bird refuses, for instance for its length. With status 429, 5xx or one of
// web.MaybeFromProxy, the code does not count.
func byCode(a *web.Answer, code int, parameter string) provider.Result {
	text := strconv.Itoa(code)
	if a.Status == http.StatusTooManyRequests || a.Status/100 == 5 || web.MaybeFromProxy(a.Status) {
		return byStatus(a, text)
	}
	switch code {
	case codeNotAllowed:
		return result(a, badKey, text)
	case codeNoBalance:
		return result(a, noCredit, text)
	case codeMissing, codeInvalid, codeBadRequest:
		switch parameter {
		case "recipients", "recipient":
			return result(a, badRecipient, text)
		case "originator":
			return result(a, badSender, text)
		case "body":
			return result(a, badText, text)
		}
		return result(a, badRequest, text)
	case codeNotFound, codeNoSuchAPI:
		return result(a, badRequest, text)
	}
	return byStatus(a, text)
}

// byStatus reads an answer without a known body. Bird documents that after these statuses the
// message was not taken. About 5xx it says nothing.
func byStatus(a *web.Answer, code string) provider.Result {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return result(a, badKey, code)
	case http.StatusPaymentRequired:
		return result(a, noCredit, code)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return result(a, badRequest, code)
	case http.StatusTooManyRequests:
		return result(a, tooFast, code)
	}
	return result(a, uncertain, code)
}

// result makes the code "status/code", or the status alone if the code cannot be shown.
func result(a *web.Answer, v web.Meaning, code string) provider.Result {
	if !web.Showable(code) {
		code = ""
	}
	return a.Result(v, code)
}

// stateOf reads a status of either API. An unknown status is Pending and ends no message.
func stateOf(status string) provider.ReceiptState {
	switch status {
	case "delivered", "read":
		return provider.Delivered
	case "delivery_failed", "sending_failed", "rejected", "expired", "failed", "deleted":
		return provider.Undelivered
	}
	return provider.Pending
}

// unreported is the reason if the operator reported nothing until the validity ended. The message
// may have arrived, so the state is not final.
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

// codes are the extended error codes of Bird's SMS platform: statusErrorCode, or
// failure.source.code.
var codes = map[string]provider.Cause{
	"1": provider.UnknownNumber, "2": provider.UnknownNumber, "3": provider.UnknownNumber,
	"5": provider.UnknownNumber,
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
	if web.Showable(status) {
		r.Code = status
	}
	if code != "" && code != "0" && len(code) <= 6 && web.Showable(code) {
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

// plainReason extracts the word of a reason. The Channels API writes "details: WORD; reason: ...;
// code: 34".
func plainReason(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(text)), ";")
	text = strings.TrimSpace(strings.TrimPrefix(text, "details:"))
	return strings.ReplaceAll(text, "_", " ")
}

// causeOf uses the most specific word first.
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
