package aws

import "dispatcher/provider/web"

// reason is why there is an exception, more closely (ConflictException, ValidationException and others of the API reference).
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

// conflicts are those with what the account has that are not about the channel as a whole: the countries and numbers of its protect
// configuration concern one message, its senders all that have the same. That there is none to choose from names no
// country: for that AWS has INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
var conflicts = map[reason]web.Meaning{
	countryProtected:     badMessage,
	numberProtected:      badMessage,
	noIdentities:         badSender,
	capabilitiesMismatch: badSender,
}

// faults are those of what is not valid. What holds for one country is about the message, also where the sender is not for it.
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

// verdictOf is what a reason means; one that is not in its table is about the channel.
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

// isSender reports whether what AWS does not know is the sender. A pool or a configuration set is the channel's.
func (e *exception) isSender() bool { return e.resource == phoneNumber || e.resource == senderID }
