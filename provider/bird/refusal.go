package bird

import (
	"errors"
	"net/http"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Our words for what Bird answers; its own may repeat the number.
var (
	errRecipient = errors.New("the provider finds fault with the recipient")
	errRequest   = errors.New("the provider does not take such a request from this channel")
	errSender    = errors.New("the provider does not take such a sender")
	errText      = errors.New("the provider does not take such a text")
	errKey       = errors.New("the provider does not take the access key")
	errCredit    = errors.New("the account has no credit")
	errSlow      = errors.New("the provider asks to slow down")
	errUncertain = errors.New("the provider's answer says neither yes nor no")
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

// byCode reads an error of the REST API. parameter names the field that is at fault: a body that Bird does not take, for
// instance for its length, another provider may. A server that stands before the API may have said a status of web.FromBetween.
func byCode(a *web.Answer, code int, parameter string) provider.Result {
	text := strconv.Itoa(code)
	if a.Status == http.StatusTooManyRequests || a.Status/100 == 5 || web.FromBetween(a.Status) {
		return byStatus(a, text)
	}
	switch code {
	case codeNotAllowed:
		return result(provider.Refused, a, text, errKey)
	case codeNoBalance:
		return result(provider.Refused, a, text, errCredit)
	case codeMissing, codeInvalid, codeBadRequest:
		switch parameter {
		case "recipients", "recipient":
			return result(provider.Rejected, a, text, errRecipient)
		case "originator":
			return refused(a, web.OnSender, text, errSender)
		case "body":
			return refused(a, web.OnMessage, text, errText)
		}
		return result(provider.Refused, a, text, errRequest)
	case codeNotFound, codeNoSuchAPI:
		return result(provider.Refused, a, text, errRequest)
	}
	return byStatus(a, text)
}

// byStatus reads an answer whose body says nothing that is known. Bird documents that it has not taken what it answers with these;
// of a 5xx it says nothing.
func byStatus(a *web.Answer, code string) provider.Result {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return result(provider.Refused, a, code, errKey)
	case http.StatusPaymentRequired:
		return result(provider.Refused, a, code, errCredit)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return result(provider.Refused, a, code, errRequest)
	case http.StatusTooManyRequests:
		r := result(provider.Throttled, a, code, errSlow)
		r.RetryAfter = web.RetryAfter(a.Header, a.At)
		return r
	}
	return result(provider.Unknown, a, code, errUncertain)
}

func unreadable(status int) provider.Result {
	return provider.Result{Outcome: provider.Unknown, Code: strconv.Itoa(status) + "/unreadable", Err: errUncertain}
}

// refused is the result of an answer that blames the sender, or the text of the one message.
func refused(a *web.Answer, b web.Blame, code string, err error) provider.Result {
	r := result(provider.Refused, a, code, err)
	r.Unfit = a.Unfit(b)
	return r
}

// result makes the code "status/code".
func result(o provider.Outcome, a *web.Answer, code string, err error) provider.Result {
	full := strconv.Itoa(a.Status)
	if word(code) {
		full += "/" + code
	}
	return provider.Result{Outcome: o, Code: full, Err: err}
}

// word reports whether a text can stand in a code: an error name or a short number, never a phone number.
func word(text string) bool {
	const longestName, longestNumber = 40, 6
	digits := 0
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r == '-':
		default:
			return false
		}
	}
	return text != "" && len(text) <= longestName && digits <= longestNumber
}
