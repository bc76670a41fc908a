package aws

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"

	"dispatcher/provider/web"
)

// refusals are our words for what a refusal is about.
var refusals = [...]error{
	web.OnChannel: errRequest,
	web.OnSender:  errors.New("the provider does not take such a sender from this account"),
	web.OnMessage: errors.New("the provider does not take such a message from this account"),
}

// conflicts are those with what the account has that are not about the channel as a whole: the countries and numbers of its protect
// configuration concern one message, its senders all that have the same. That there is none to choose from names no
// country: for that AWS has INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
var conflicts = map[types.ConflictExceptionReason]web.Blame{
	types.ConflictExceptionReasonDestinationCountryBlockedByProtectConfiguration:      web.OnMessage,
	types.ConflictExceptionReasonDestinationPhoneNumberBlockedByProtectNumberOverride: web.OnMessage,
	types.ConflictExceptionReasonNoOriginationIdentitiesFound:                         web.OnSender,
	types.ConflictExceptionReasonNumberCapabilitiesMismatch:                           web.OnSender,
}

// reasons are those of what is not valid. What holds for one country is about the message, also where the sender is not for it.
var reasons = map[types.ValidationExceptionReason]web.Blame{
	types.ValidationExceptionReasonCountryCodeMismatch:                  web.OnMessage,
	types.ValidationExceptionReasonCountryNotEnabled:                    web.OnMessage,
	types.ValidationExceptionReasonDestinationCountryBlocked:            web.OnMessage,
	types.ValidationExceptionReasonInternationalSendingNotSupported:     web.OnMessage,
	types.ValidationExceptionReasonInvalidIdentityForDestinationCountry: web.OnMessage,
	types.ValidationExceptionReasonPriceOverThreshold:                   web.OnMessage,
	types.ValidationExceptionReasonSenderIdNotRegistered:                web.OnSender, // not, or no longer, the account's
	types.ValidationExceptionReasonSenderIdNotSupported:                 web.OnMessage,
	types.ValidationExceptionReasonSenderIdRequiresRegistration:         web.OnMessage,
}

// isSender reports whether what AWS does not know is the sender. A pool or a configuration set is the channel's.
func isSender(e *types.ResourceNotFoundException) bool {
	return e.ResourceType == types.ResourceTypePhoneNumber || e.ResourceType == types.ResourceTypeSenderId
}
