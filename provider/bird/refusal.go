package bird

import (
	"net/http"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Our words for what Bird answers; its own may repeat the number.
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

// byCode reads an error of the REST API. parameter names the field that is at fault: a body that Bird does not take, for
// instance for its length, another provider may. A server that stands before the API may have said a status of web.MaybeFromProxy.
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

// byStatus reads an answer whose body says nothing that is known. Bird documents that it has not taken what it answers with these;
// of a 5xx it says nothing.
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

// result makes the code "status/code", or the status alone where the code cannot be shown.
func result(a *web.Answer, v web.Meaning, code string) provider.Result {
	if !word(code) {
		code = ""
	}
	return a.Result(v, code)
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
