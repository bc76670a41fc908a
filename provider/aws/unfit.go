package aws

import "github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"

// unfitConflicts are the conflicts of one message with what the account has: the countries and numbers of its protect configuration,
// and its senders for a country.
var unfitConflicts = map[types.ConflictExceptionReason]bool{
	types.ConflictExceptionReasonDestinationCountryBlockedByProtectConfiguration:      true,
	types.ConflictExceptionReasonDestinationPhoneNumberBlockedByProtectNumberOverride: true,
	types.ConflictExceptionReasonNoOriginationIdentitiesFound:                         true,
	types.ConflictExceptionReasonNumberCapabilitiesMismatch:                           true,
}

// unfitReasons are those of what is not valid for the country or the sender of one message.
var unfitReasons = map[types.ValidationExceptionReason]bool{
	types.ValidationExceptionReasonCountryCodeMismatch:                  true,
	types.ValidationExceptionReasonCountryNotEnabled:                    true,
	types.ValidationExceptionReasonDestinationCountryBlocked:            true,
	types.ValidationExceptionReasonInternationalSendingNotSupported:     true,
	types.ValidationExceptionReasonInvalidIdentityForDestinationCountry: true,
	types.ValidationExceptionReasonPriceOverThreshold:                   true,
	types.ValidationExceptionReasonSenderIdNotRegistered:                true,
	types.ValidationExceptionReasonSenderIdNotSupported:                 true,
	types.ValidationExceptionReasonSenderIdRequiresRegistration:         true,
}

// isSender reports whether what AWS does not know is the sender of a message. A pool or a configuration set is the channel's.
func isSender(e *types.ResourceNotFoundException) bool {
	return e.ResourceType == types.ResourceTypePhoneNumber || e.ResourceType == types.ResourceTypeSenderId
}
