package aws

import (
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"

	"dispatcher/provider/web"
)

// conflicts are those with what the account has that are not about the channel as a whole: the countries and numbers of its protect
// configuration concern one message, its senders all that have the same. That there is none to choose from names no
// country: for that AWS has INVALID_IDENTITY_FOR_DESTINATION_COUNTRY.
var conflicts = map[types.ConflictExceptionReason]web.Verdict{
	types.ConflictExceptionReasonDestinationCountryBlockedByProtectConfiguration:      badMessage,
	types.ConflictExceptionReasonDestinationPhoneNumberBlockedByProtectNumberOverride: badMessage,
	types.ConflictExceptionReasonNoOriginationIdentitiesFound:                         badSender,
	types.ConflictExceptionReasonNumberCapabilitiesMismatch:                           badSender,
}

// reasons are those of what is not valid. What holds for one country is about the message, also where the sender is not for it.
var reasons = map[types.ValidationExceptionReason]web.Verdict{
	types.ValidationExceptionReasonCountryCodeMismatch:                  badMessage,
	types.ValidationExceptionReasonCountryNotEnabled:                    badMessage,
	types.ValidationExceptionReasonDestinationCountryBlocked:            badMessage,
	types.ValidationExceptionReasonInternationalSendingNotSupported:     badMessage,
	types.ValidationExceptionReasonInvalidIdentityForDestinationCountry: badMessage,
	types.ValidationExceptionReasonPriceOverThreshold:                   badMessage,
	types.ValidationExceptionReasonSenderIdNotRegistered:                badSender, // not, or no longer, the account's
	types.ValidationExceptionReasonSenderIdNotSupported:                 badMessage,
	types.ValidationExceptionReasonSenderIdRequiresRegistration:         badMessage,
}

// verdictOf is what a reason means; one that is not in its table is about the channel.
func verdictOf[R ~string](table map[R]web.Verdict, reason R) web.Verdict {
	if v, ok := table[reason]; ok {
		return v
	}
	return badRequest
}

// isSender reports whether what AWS does not know is the sender. A pool or a configuration set is the channel's.
func isSender(e *types.ResourceNotFoundException) bool {
	return e.ResourceType == types.ResourceTypePhoneNumber || e.ResourceType == types.ResourceTypeSenderId
}
