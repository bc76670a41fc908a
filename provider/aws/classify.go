package aws

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"
	"github.com/aws/smithy-go"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Our words for what AWS answers; its own may repeat the number.
var (
	errRecipient  = errors.New("the provider finds fault with the recipient")
	errRequest    = errors.New("the provider does not take such a request from this account")
	errAccess     = errors.New("the provider does not take the credentials")
	errQuota      = errors.New("the account has used up its quota")
	errSlow       = errors.New("the provider asks to slow down")
	errUncertain  = errors.New("the provider's answer says neither yes nor no")
	errUnreadable = errors.New("the provider's answer cannot be read")
)

// Classify reads an answer. Exceptions are those of SendTextMessage and the common errors of the AWS APIs; of an
// InternalServerException AWS does not say that nothing was sent.
func (a *api) Classify(answer *web.Answer) provider.Result {
	out, err := read(a.reader, answer)
	if err == nil {
		if id := aws.ToString(out.MessageId); answer.Status == http.StatusOK && plainID(id) {
			return provider.Result{Outcome: provider.Accepted, Reference: id}
		}
		return result(provider.Unknown, answer, "unreadable", errUnreadable)
	}
	var said smithy.APIError
	if !errors.As(err, &said) {
		if answer.Status == http.StatusTooManyRequests {
			return throttled(answer, "")
		}
		return result(provider.Unknown, answer, "unreadable", errUnreadable)
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
		return result(provider.Unknown, answer, said.ErrorCode(), errUncertain)
	case errors.As(said, &conflict):
		return conflicting(answer, conflict)
	case errors.As(said, &invalid):
		return invalidInput(answer, invalid)
	case errors.As(said, &unknown) && isSender(unknown):
		return refused(answer, web.OnSender, unknown.ErrorCode())
	case errors.As(said, &quota):
		return result(provider.Refused, answer, orElse(string(quota.Reason), said.ErrorCode()), errQuota)
	case errors.As(said, &denied):
		return result(provider.Refused, answer, orElse(string(denied.Reason), said.ErrorCode()), errAccess)
	}
	return byCode(answer, said.ErrorCode())
}

// conflicting tells a recipient who does not want messages from what is wrong with the account's own resources, of which its
// protect configuration with its lists of countries and numbers is one.
func conflicting(answer *web.Answer, e *types.ConflictException) provider.Result {
	code := orElse(string(e.Reason), e.ErrorCode())
	if e.Reason == types.ConflictExceptionReasonDestinationPhoneNumberOptedOut {
		return result(provider.Rejected, answer, code, errRecipient)
	}
	return refused(answer, conflicts[e.Reason], code)
}

func invalidInput(answer *web.Answer, e *types.ValidationException) provider.Result {
	code := orElse(string(e.Reason), e.ErrorCode())
	switch {
	case blamesOnly(e, "DestinationPhoneNumber"):
		return result(provider.Rejected, answer, code, errRecipient)
	case blamesOnly(e, "DestinationPhoneNumber", "MessageBody"):
		return refused(answer, web.OnMessage, code)
	case blamesOnly(e, "DestinationPhoneNumber", "OriginationIdentity", "MessageBody"):
		return refused(answer, web.OnSender, code)
	}
	return refused(answer, reasons[e.Reason], code)
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
		return throttled(answer, code)
	case "ResourceNotFoundException", "UnknownOperationException", "SerializationException":
		return result(provider.Refused, answer, code, errRequest)
	case "AccessDenied", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"ExpiredToken", "ExpiredTokenException", "OptInRequired", "NotAuthorized", "RequestExpired":
		return result(provider.Refused, answer, code, errAccess)
	}
	if answer.Status == http.StatusTooManyRequests {
		return throttled(answer, code)
	}
	return result(provider.Unknown, answer, code, errUncertain)
}

// refused is the result of an answer that is about the account, the sender or the one message.
func refused(answer *web.Answer, b web.Blame, code string) provider.Result {
	r := result(provider.Refused, answer, code, refusals[b])
	r.Unfit = answer.Unfit(b)
	return r
}

func throttled(answer *web.Answer, code string) provider.Result {
	r := result(provider.Throttled, answer, code, errSlow)
	r.RetryAfter = web.RetryAfter(answer.Header, answer.At)
	return r
}

// result makes the code "status/word".
func result(o provider.Outcome, answer *web.Answer, code string, err error) provider.Result {
	const longest = 60
	full := strconv.Itoa(answer.Status)
	if name(code) && len(code) <= longest {
		full += "/" + code
	}
	return provider.Result{Outcome: o, Code: full, Err: err}
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
