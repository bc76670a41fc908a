package aws

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Errors for AWS's answers. AWS's own texts may contain the number.
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

// Classify reads an answer. Exceptions are those of SendTextMessage and the common errors of the
// AWS APIs. AWS does not say that nothing was sent after an InternalServerException.
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

// taken reads a successful answer: SendTextMessage has one, 200 with an id.
func taken(answer *web.Answer) provider.Result {
	if id := readID(answer.Body); answer.Status == http.StatusOK && web.PlainID(id) {
		return provider.Result{Outcome: provider.Accepted, Reference: id}
	}
	return result(answer, unreadable, "unreadable")
}

// classify is the meaning of an exception. With a status of web.MaybeFromProxy it is Unknown.
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
func (e *exception) code() string { return cmp.Or(string(e.reason), e.name) }

// conflict distinguishes a recipient who opted out from the account's own resources, such as the
// countries and numbers of its protect configuration.
func (e *exception) conflict() web.Meaning {
	if e.reason == optedOut {
		return badRecipient
	}
	return meaningOf(conflicts, e.reason)
}

// fault returns which part of a request is invalid.
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

// blamesOnly reports whether these fields, and no others, are invalid. Other reasons may also name
// a field, and mean something else: PRICE_OVER_THRESHOLD, DESTINATION_COUNTRY_BLOCKED,
// INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
func (e *exception) blamesOnly(fields ...string) bool {
	if e.reason != invalidParameter && e.reason != fieldValidationFailed {
		return false
	}
	for _, field := range e.fields {
		if !slices.ContainsFunc(fields,
			func(f string) bool { return strings.EqualFold(f, field) }) {
			return false
		}
	}
	return len(e.fields) > 0
}

// byName reads exceptions that have no reasons.
func byName(answer *web.Answer, code string) provider.Result {
	switch code {
	case "ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded",
		"RequestThrottled", "RequestThrottledException":
		return result(answer, tooFast, code)
	case "UnknownOperationException", "SerializationException":
		return result(answer, badRequest, code)
	case "AccessDenied", "UnrecognizedClientException", "InvalidClientTokenId",
		"InvalidSignatureException", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException",
		"ExpiredToken", "ExpiredTokenException", "OptInRequired", "NotAuthorized", "RequestExpired":
		return result(answer, badAccess, code)
	}
	if answer.Status == http.StatusTooManyRequests {
		return result(answer, tooFast, code)
	}
	return result(answer, uncertain, code)
}

// result makes the code "status/word". AWS's reasons are longer than web.SafeCode allows.
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

// exception holds the decisive fields of a failed answer. AWS's texts are not read: they may
// contain the number.
type exception struct {
	name     string
	reason   reason
	fields   []string // those that are not valid; an unreadable name is ""
	resource resource
}

// nameless is the name of an exception without one.
const nameless = "UnknownError"

// readException reads an exception; false if the body is not JSON. The body may be empty, because
// the header or the status may hold everything.
func readException(a *web.Answer) (*exception, bool) {
	parsed := members{}
	if len(bytes.TrimSpace(a.Body)) > 0 {
		var ok bool
		if parsed, ok = readMembers(a.Body); !ok {
			return nil, false
		}
	}
	e := &exception{
		name: nameless, reason: reason(parsed.text("Reason")), fields: parsed.fields(),
		resource: resource(parsed.text("ResourceType")),
	}
	for _, shown := range []string{
		a.Header.Get("X-Amzn-Errortype"), parsed.text("__type"), parsed.text("code"),
	} {
		if short := bare(shown); short != "" {
			e.name = short
			break
		}
	}
	return e, true
}

// bare is the name of an exception without namespace and address:
// "com.amazonaws.pinpointsmsvoicev2#ConflictException:http://..." (AWS JSON 1.0 protocol,
// "Operation error serialization").
func bare(shown string) string {
	shown, _, _ = strings.Cut(shown, ":")
	if _, name, found := strings.Cut(shown, "#"); found {
		return name
	}
	return shown
}

// readID reads the id of an accepted message; empty if there is none.
func readID(body []byte) string {
	parsed, _ := readMembers(body)
	return parsed.text("MessageId")
}

// members reads the members of a JSON object one by one: a member of an unexpected type is empty
// and does not affect the others.
type members map[string]json.RawMessage

// readMembers reads a body that is a JSON object, or null, and nothing else.
func readMembers(body []byte) (members, bool) {
	var m members
	err := json.Unmarshal(body, &m)
	return m, err == nil
}

func (m members) text(name string) string {
	var text string
	_ = json.Unmarshal(m[name], &text) // a value that is not a text stays empty
	return text
}

// fields are the names in the list of fields that are not valid.
func (m members) fields() []string {
	var list []json.RawMessage
	_ = json.Unmarshal(m["Fields"], &list) // a value that is not a list stays empty
	names := make([]string, len(list))
	for i, field := range list {
		parsed, _ := readMembers(field)
		names[i] = parsed.text("Name")
	}
	return names
}

// reason is the detailed reason of an exception (ConflictException, ValidationException and others
// of the API reference).
type reason string

// Reasons of a ConflictException.
const (
	optedOut             reason = "DESTINATION_PHONE_NUMBER_OPTED_OUT"
	countryProtected     reason = "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION"
	numberProtected      reason = "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE"
	noIdentities         reason = "NO_ORIGINATION_IDENTITIES_FOUND"
	capabilitiesMismatch reason = "NUMBER_CAPABILITIES_MISMATCH"
)

// Reasons of a ValidationException.
const (
	invalidParameter           reason = "INVALID_PARAMETER"
	fieldValidationFailed      reason = "FIELD_VALIDATION_FAILED"
	countryCodeMismatch        reason = "COUNTRY_CODE_MISMATCH"
	countryNotEnabled          reason = "COUNTRY_NOT_ENABLED"
	countryBlocked             reason = "DESTINATION_COUNTRY_BLOCKED"
	internationalNotSupported  reason = "INTERNATIONAL_SENDING_NOT_SUPPORTED"
	invalidIdentityForCountry  reason = "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY"
	priceOverThreshold         reason = "PRICE_OVER_THRESHOLD"
	senderNotRegistered        reason = "SENDER_ID_NOT_REGISTERED"
	senderNotSupported         reason = "SENDER_ID_NOT_SUPPORTED"
	senderRequiresRegistration reason = "SENDER_ID_REQUIRES_REGISTRATION"
)

// conflicts are the reasons of a ConflictException that are not about the channel: countries and
// numbers of the protect configuration concern one message, senders all messages with that sender.
// NO_ORIGINATION_IDENTITIES_FOUND names no country; for a country AWS has
// INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
var conflicts = map[reason]web.Meaning{
	countryProtected:     badMessage,
	numberProtected:      badMessage,
	noIdentities:         badSender,
	capabilitiesMismatch: badSender,
}

// faults are the reasons of a ValidationException. A reason that holds for one country is about the
// message, even if the sender is at fault there.
var faults = map[reason]web.Meaning{
	countryCodeMismatch:        badMessage,
	countryNotEnabled:          badMessage,
	countryBlocked:             badMessage,
	internationalNotSupported:  badMessage,
	invalidIdentityForCountry:  badMessage,
	priceOverThreshold:         badMessage,
	senderNotRegistered:        badSender, // not, or no longer, the account's
	senderNotSupported:         badMessage,
	senderRequiresRegistration: badMessage,
}

// meaningOf is the meaning of a reason. A reason that is not in the table is about the channel.
func meaningOf(table map[reason]web.Meaning, why reason) web.Meaning {
	if v, ok := table[why]; ok {
		return v
	}
	return badRequest
}

// resource is a kind of thing that an account has (ResourceNotFoundException of the API reference).
type resource string

// Resources that are senders.
const (
	phoneNumber resource = "phone-number"
	senderID    resource = "sender-id"
)

// isSender reports whether the unknown resource is a sender. A pool or a configuration set belongs
// to the channel.
func (e *exception) isSender() bool { return e.resource == phoneNumber || e.resource == senderID }
