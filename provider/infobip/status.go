package infobip

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// rejections are the statuses with which Infobip answers a submission that it does not take, by
// https://www.infobip.com/docs/essentials/api-essentials/response-status-and-error-codes. Rejected are those that blame the
// recipient; a prefix that Infobip's networks do not know (8), a blocklist of the account or of one operator (14) and
// Infobip's own fraud protection (87) are the channel's. That an operator rejected a message (4) or did not deliver it
// (9) is how one ended that was taken: as an answer it is Unknown, and a receipt or the log tells.
var rejections = map[int]web.Meaning{
	6:   web.Unfit("the network is not covered or not set up on the account"),
	8:   web.Unfit("the prefix of the number is not known here"),
	10:  web.Rejected("the recipient is on a do-not-disturb list"),
	11:  web.BadSender("the sender is not registered on the account"),
	12:  web.Refused("the account has not enough credit"),
	13:  web.BadSender("the sender is blocked on the account"),
	14:  web.Unfit("the recipient is on a blocklist of the account or the operator"),
	17:  web.Refused("the credit of the account has lapsed"),
	18:  web.Refused("the account may send to its test number only"),
	19:  web.Refused("the account has no route"),
	20:  web.Unfit("more to one number than the account may send"),
	21:  web.Refused("a system error before anything was sent"),
	24:  web.Refused("the user data header is invalid"),
	25:  web.Unfit("the text is longer than Infobip takes"),
	31:  web.Refused("the message was not sent"),
	51:  web.Rejected("there is no recipient"),
	52:  web.Rejected("the recipient is invalid"),
	87:  web.Unfit("fraud protection rejects the message"),
	100: web.Refused("the platform rejects the request"),
}

// duplicate is the status of a message whose id was used before. Ids are keys that nobody else uses: an
// earlier submission of ours may have been taken, so that it decides nothing.
const duplicate = 23

// meaning is what a status of the groups "rejected" and "undeliverable" means; false when it says nothing certain. A
// rejection that is not listed counts against the channel, so that another one may try.
func (s status) meaning() (web.Meaning, bool) {
	if s.ID == duplicate || (s.GroupID != groupRejected && s.GroupID != groupUndeliverable) {
		return web.Meaning{}, false
	}
	if v, ok := rejections[s.ID]; ok {
		return v, true
	}
	return web.Refused("the API rejects the message"), s.GroupID == groupRejected
}

// Statuses that end in words that sound final and are not: the operator has it but the handset does not, and no
// report came from the operator in time.
const (
	deliveredToOperator = 2
	expiredUnknown      = 29
)

// state translates the status of a delivery report and the id of the error beside it.
func (s status) state(errorID int) (provider.ReceiptState, provider.Cause) {
	switch {
	case s.ID == deliveredToOperator || s.ID == expiredUnknown:
		return provider.Pending, provider.Unspecified
	case s.GroupID == groupDelivered:
		return provider.Delivered, provider.Unspecified
	case s.GroupID == groupUndeliverable, s.GroupID == groupExpired, s.GroupID == groupRejected:
		return provider.Undelivered, s.cause(errorID)
	}
	return provider.Pending, provider.Unspecified
}

// cause asks the error first: it is what the network said.
func (s status) cause(errorID int) provider.Cause {
	if cause := causeOfError(errorID); cause != provider.Unspecified {
		return cause
	}
	if cause := causesOfStatus[s.ID]; cause != provider.Unspecified {
		return cause
	}
	if s.GroupID == groupExpired {
		return provider.Expired
	}
	return provider.Unspecified
}

var causesOfStatus = map[int]provider.Cause{
	6: provider.NetworkError, 8: provider.UnknownNumber, 10: provider.OptedOut, 11: provider.BadSender, 12: provider.NoCredit,
	13: provider.BadSender, 14: provider.Blocked, 17: provider.NoCredit, 18: provider.Blocked, 19: provider.NetworkError,
	20: provider.Spam, 21: provider.NetworkError, 51: provider.UnknownNumber, 52: provider.UnknownNumber, 87: provider.Blocked,
	98: provider.Deleted,
}
