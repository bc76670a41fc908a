package aws

import (
	"net/http"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Our words for what AWS answers; its own may repeat the number.
var (
	badRecipient = web.Rejected("the provider finds fault with the recipient")
	badRequest   = web.Refused("the provider does not take such a request from this account")
	badSender    = web.BadSender("the provider does not take such a sender from this account")
	badMessage   = web.Unfit("the provider does not take such a message from this account")
	badAccess    = web.Refused("the provider does not take the credentials")
	quotaUsedUp  = web.Refused("the account has used up its quota")
	tooFast      = web.Throttled("the provider asks to slow down")
	uncertain    = web.Unknown("the provider's answer says neither yes nor no")
	unreadable   = web.Unknown("the provider's answer cannot be read")
)

// Classify reads an answer. Exceptions are those of SendTextMessage and the common errors of the AWS APIs; of an
// InternalServerException AWS does not say that nothing was sent.
func (*api) Classify(answer *web.Answer) provider.Result {
	if answer.Status >= 200 && answer.Status < 300 {
		return taken(answer)
	}
	e, ok := readException(answer)
	switch {
	case ok:
		return e.classify(answer)
	case answer.Status == http.StatusTooManyRequests:
		return result(answer, tooFast, "")
	}
	return result(answer, unreadable, "unreadable")
}

// taken reads an answer that is a success. SendTextMessage has one, 200 with an id.
func taken(answer *web.Answer) provider.Result {
	if id := readID(answer.Body); answer.Status == http.StatusOK && plainID(id) {
		return provider.Result{Outcome: provider.Accepted, Reference: id}
	}
	return result(answer, unreadable, "unreadable")
}

// classify says what an exception means. None means anything with a status of web.MaybeFromProxy.
func (e *exception) classify(answer *web.Answer) provider.Result {
	if web.MaybeFromProxy(answer.Status) {
		return result(answer, uncertain, e.name)
	}
	switch e.name {
	case "ConflictException":
		return result(answer, e.conflict(), e.code())
	case "ValidationException":
		return result(answer, e.fault(), e.code())
	case "ServiceQuotaExceededException":
		return result(answer, quotaUsedUp, e.code())
	case "AccessDeniedException":
		return result(answer, badAccess, e.code())
	case "ResourceNotFoundException":
		if e.isSender() {
			return result(answer, badSender, e.name)
		}
		return result(answer, badRequest, e.name)
	}
	return byName(answer, e.name)
}

// code is the reason, or the name of an exception without one.
func (e *exception) code() string { return orElse(string(e.reason), e.name) }

// conflict tells a recipient who does not want messages from what is wrong with the account's own resources, of which its
// protect configuration with its lists of countries and numbers is one.
func (e *exception) conflict() web.Meaning {
	if e.reason == optedOut {
		return badRecipient
	}
	return meaningOf(conflicts, e.reason)
}

// fault tells what of a request is not valid.
func (e *exception) fault() web.Meaning {
	switch {
	case e.blamesOnly("DestinationPhoneNumber"):
		return badRecipient
	case e.blamesOnly("DestinationPhoneNumber", "MessageBody"):
		return badMessage
	case e.blamesOnly("DestinationPhoneNumber", "OriginationIdentity", "MessageBody"):
		return badSender
	}
	return meaningOf(faults, e.reason)
}

// blamesOnly reports whether these fields, and nothing else, are not valid. Other reasons may name a field, too, and mean
// something else: PRICE_OVER_THRESHOLD, DESTINATION_COUNTRY_BLOCKED, INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
func (e *exception) blamesOnly(fields ...string) bool {
	if e.reason != invalidParameter && e.reason != fieldValidationFailed {
		return false
	}
	for _, field := range e.fields {
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, field) }) {
			return false
		}
	}
	return len(e.fields) > 0
}

// byName reads exceptions that have no reasons.
func byName(answer *web.Answer, code string) provider.Result {
	switch code {
	case "ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException":
		return result(answer, tooFast, code)
	case "UnknownOperationException", "SerializationException":
		return result(answer, badRequest, code)
	case "AccessDenied", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"ExpiredToken", "ExpiredTokenException", "OptInRequired", "NotAuthorized", "RequestExpired":
		return result(answer, badAccess, code)
	}
	if answer.Status == http.StatusTooManyRequests {
		return result(answer, tooFast, code)
	}
	return result(answer, uncertain, code)
}

// result makes the code "status/word". Reasons of AWS are longer than what web.Bounded shows.
func result(answer *web.Answer, v web.Meaning, code string) provider.Result {
	const longest = 60
	r := answer.Result(v, "")
	if name(code) && len(code) <= longest {
		r.Code += "/" + code
	}
	return r
}

// name reports whether a text is the name of an exception or of a reason.
func name(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	})
}

// plainID reports whether a text can be an id of AWS.
func plainID(text string) bool {
	return text != "" && len(text) <= provider.MaxReference && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
