package infobip

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// rejections are the statuses of submissions that Infobip does not take, by
// https://www.infobip.com/docs/essentials/api-essentials/response-status-and-error-codes. Rejected
// are those that blame the recipient. A prefix unknown to Infobip's networks (8), a blocklist of
// the account or of one operator (14) and Infobip's own fraud protection (87) are about the
// channel. A message that an operator rejected (4) or did not deliver (9) had been taken: as an
// answer such a status is Unknown, and a receipt or the log decides.
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

// duplicate is the status of a message whose id was used before. Ids are our keys, which nobody
// else uses. An earlier submission of the message may have been taken, so the outcome is Unknown.
const duplicate = 23

// meaning is the meaning of a status of the groups "rejected" and "undeliverable"; false if the
// outcome is uncertain. A rejection that is not listed counts against the channel, so that another
// channel may send the message.
func (s status) meaning() (web.Meaning, bool) {
	if s.ID == duplicate || (s.GroupID != groupRejected && s.GroupID != groupUndeliverable) {
		return web.Meaning{}, false
	}
	if v, ok := rejections[s.ID]; ok {
		return v, true
	}
	return web.Refused("the API rejects the message"), s.GroupID == groupRejected
}

// Statuses that are not final despite their names: the operator has the message but the handset
// does not, or the operator sent no report in time.
const (
	deliveredToOperator = 2
	expiredUnknown      = 29
)

// state translates the status of a delivery report and the id of its error.
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

// cause prefers the error, which comes from the network.
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
	6:  provider.NetworkError,
	8:  provider.UnknownNumber,
	10: provider.OptedOut,
	11: provider.BadSender,
	12: provider.NoCredit,
	13: provider.BadSender,
	14: provider.Blocked,
	17: provider.NoCredit,
	18: provider.Blocked,
	19: provider.NetworkError,
	20: provider.Spam,
	21: provider.NetworkError,
	51: provider.UnknownNumber,
	52: provider.UnknownNumber,
	87: provider.Blocked,
	98: provider.Deleted,
}

// causesOfError are the causes of Infobip's "general error codes", most of which are MAP errors.
var causesOfError = map[int]provider.Cause{
	1:    provider.UnknownNumber, // unknown subscriber
	5:    provider.UnknownNumber, // unidentified subscriber
	6:    provider.Absent,        // absent subscriber
	9:    provider.Blocked,       // illegal subscriber
	11:   provider.NotMobile,     // teleservice not provisioned
	12:   provider.Blocked,       // illegal equipment
	13:   provider.Blocked,       // call barred
	21:   provider.NotMobile,     // facility not supported
	27:   provider.Absent,        // absent subscriber
	31:   provider.Absent,        // busy for MT SMS
	32:   provider.Absent,        // delivery failure at the handset
	33:   provider.Absent,        // waiting list full
	34:   provider.NetworkError,  // system failure
	256:  provider.Absent,        // memory of the handset exceeded
	258:  provider.NotMobile,     // not equipped for short messages
	345:  provider.NetworkError,  // operator not found
	351:  provider.UnknownNumber, // invalid destination address
	352:  provider.UnknownNumber, // invalid request destination
	368:  provider.BadSender,     // invalid source address
	375:  provider.BadSender,     // source address is blocked
	433:  provider.NoCredit,      // account access denied
	488:  provider.BadSender,     // toll-free number not verified
	560:  provider.Blocked,       // sender blocked for the end user
	561:  provider.Spam,          // content blocked by the operator
	562:  provider.BadSender,     // short code not provisioned
	563:  provider.BadSender,     // short code expired
	564:  provider.BadSender,     // short code blocked
	565:  provider.Blocked,       // cannot receive from short codes
	566:  provider.Blocked,       // destination blocked by the operator
	568:  provider.NotMobile,     // destination not provisioned for SMS
	569:  provider.Blocked,       // destination suspended
	571:  provider.BadSender,     // campaign rejected
	572:  provider.BadSender,     // campaign not provisioned
	573:  provider.OptedOut,      // sender blocked by the end user
	581:  provider.Blocked,       // the recipient is out of credit
	594:  provider.BadSender,     // invalid campaign
	603:  provider.Spam,          // content blocked
	604:  provider.Blocked,       // on the campaign's list of blocked numbers
	607:  provider.Spam,          // rejected as spam by the operator
	608:  provider.Blocked,       // fraud protection
	609:  provider.Blocked,       // fraud protection
	628:  provider.Absent,        // temporary failure of the handset
	629:  provider.NotMobile,     // cannot receive SMS
	630:  provider.NetworkError,  // destination overloaded
	631:  provider.NetworkError,  // error of the operator's network
	633:  provider.NetworkError,  // unknown operator
	810:  provider.NetworkError,  // failed delivery
	811:  provider.Expired,       // expired
	2048: provider.NetworkError,  // time-out
	2049: provider.Blocked,       // IMSI blocked
	2050: provider.Blocked,       // destination blocked
	2052: provider.Blocked,       // destination blocked
	2053: provider.BadSender,     // sender blocked
	3041: provider.UnknownNumber, // deactivated
	4098: provider.Expired,       // validity period expired
	4100: provider.Deleted,       // cancelled
	4101: provider.Expired,       // validity expired
	4103: provider.Spam,          // flooding
	4104: provider.Spam,          // flooding with one text
}

// causeOfError also covers ranges that are always network errors: of the transport (500 to 504), of
// the dialogue (1024 to 1031), of the translation of addresses (1152 to 1166) and of the peer (1281
// to 1796).
func causeOfError(id int) provider.Cause {
	if cause, ok := causesOfError[id]; ok {
		return cause
	}
	switch {
	case id >= 500 && id <= 504, id >= 1024 && id <= 1031, id >= 1152 && id <= 1166,
		id >= 1281 && id <= 1796:
		return provider.NetworkError
	}
	return provider.Unspecified
}
