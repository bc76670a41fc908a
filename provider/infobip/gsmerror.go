package infobip

import "dispatcher/provider"

// causesOfError are those of the "general error codes" of Infobip, most of which are MAP errors.
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

// causeOfError also knows the ranges of errors that are the network's in every case: of the transport (500 to 504), of
// the dialogue (1024 to 1031), of the translation of addresses (1152 to 1166) and of the peer (1281 to 1796).
func causeOfError(id int) provider.Cause {
	if cause, ok := causesOfError[id]; ok {
		return cause
	}
	switch {
	case id >= 500 && id <= 504, id >= 1024 && id <= 1031, id >= 1152 && id <= 1166, id >= 1281 && id <= 1796:
		return provider.NetworkError
	}
	return provider.Unspecified
}
