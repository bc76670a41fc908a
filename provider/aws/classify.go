package aws

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"
	"github.com/aws/smithy-go"

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
func (a *api) Classify(answer *web.Answer) provider.Result {
	out, err := read(a.reader, answer)
	if err == nil {
		if id := aws.ToString(out.MessageId); answer.Status == http.StatusOK && plainID(id) {
			return provider.Result{Outcome: provider.Accepted, Reference: id}
		}
		return result(answer, unreadable, "unreadable")
	}
	var said smithy.APIError
	if !errors.As(err, &said) {
		if answer.Status == http.StatusTooManyRequests {
			return result(answer, tooFast, "")
		}
		return result(answer, unreadable, "unreadable")
	}
	return exception(answer, said)
}

// exception reads one that the SDK knows by its type, or by its code. None comes with a status of web.FromBetween.
func exception(answer *web.Answer, said smithy.APIError) provider.Result {
	var conflict *types.ConflictException
	var invalid *types.ValidationException
	var unknown *types.ResourceNotFoundException
	var quota *types.ServiceQuotaExceededException
	var denied *types.AccessDeniedException
	switch {
	case web.FromBetween(answer.Status):
		return result(answer, uncertain, said.ErrorCode())
	case errors.As(said, &conflict):
		return conflicting(answer, conflict)
	case errors.As(said, &invalid):
		return invalidInput(answer, invalid)
	case errors.As(said, &unknown) && isSender(unknown):
		return result(answer, badSender, unknown.ErrorCode())
	case errors.As(said, &quota):
		return result(answer, quotaUsedUp, orElse(string(quota.Reason), said.ErrorCode()))
	case errors.As(said, &denied):
		return result(answer, badAccess, orElse(string(denied.Reason), said.ErrorCode()))
	}
	return byCode(answer, said.ErrorCode())
}

// conflicting tells a recipient who does not want messages from what is wrong with the account's own resources, of which its
// protect configuration with its lists of countries and numbers is one.
func conflicting(answer *web.Answer, e *types.ConflictException) provider.Result {
	code := orElse(string(e.Reason), e.ErrorCode())
	if e.Reason == types.ConflictExceptionReasonDestinationPhoneNumberOptedOut {
		return result(answer, badRecipient, code)
	}
	return result(answer, verdictOf(conflicts, e.Reason), code)
}

func invalidInput(answer *web.Answer, e *types.ValidationException) provider.Result {
	code := orElse(string(e.Reason), e.ErrorCode())
	switch {
	case blamesOnly(e, "DestinationPhoneNumber"):
		return result(answer, badRecipient, code)
	case blamesOnly(e, "DestinationPhoneNumber", "MessageBody"):
		return result(answer, badMessage, code)
	case blamesOnly(e, "DestinationPhoneNumber", "OriginationIdentity", "MessageBody"):
		return result(answer, badSender, code)
	}
	return result(answer, verdictOf(reasons, e.Reason), code)
}

// blamesOnly reports whether these fields, and nothing else, are not valid. Other reasons may name a field, too, and mean
// something else: PRICE_OVER_THRESHOLD, DESTINATION_COUNTRY_BLOCKED, INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
func blamesOnly(e *types.ValidationException, fields ...string) bool {
	switch e.Reason {
	case types.ValidationExceptionReasonInvalidParameter, types.ValidationExceptionReasonFieldValidationFailed:
	default:
		return false
	}
	for _, field := range e.Fields {
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, aws.ToString(field.Name)) }) {
			return false
		}
	}
	return len(e.Fields) > 0
}

// byCode reads exceptions that have no reasons.
func byCode(answer *web.Answer, code string) provider.Result {
	switch code {
	case "ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException":
		return result(answer, tooFast, code)
	case "ResourceNotFoundException", "UnknownOperationException", "SerializationException":
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
func result(answer *web.Answer, v web.Verdict, code string) provider.Result {
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
	const longest = 128
	return text != "" && len(text) <= longest && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
