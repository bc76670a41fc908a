package vonage

import "dispatcher/provider"

// messageFaults are the codes of https://developer.vonage.com/api-errors/messages that are the message's fault: no
// other channel would do better. Code 1020 is none of them, because the invalid parameter may be the channel's own, and
// neither is 1090, a text longer than Vonage takes.
var messageFaults = map[string]string{
	"1040": "the message cannot be processed, for instance for its prefix",
	"1050": "the number is barred",
	"1170": "the recipient is invalid",
	"1190": "the number is no longer active",
	"1240": "the recipient told to stop",
	"1270": "the recipient may not get this for its age",
	"1280": "the carrier bars the number",
	"1290": "the recipient's plan has no credit",
	"1300": "the number is not a user of the network",
	"1310": "the recipient's device cannot receive it",
	"1430": "the recipient is invalid",
}

// statusState translates the status of a message and the code of its error. Code 1490 says that not all parts were
// reported in time and that the outcome is unknown, so that it stays pending.
func statusState(status, code string) (provider.ReceiptState, provider.Cause) {
	switch status {
	case "delivered":
		return provider.Delivered, provider.Unspecified
	case "rejected", "undeliverable":
		if code != "1490" {
			return provider.Undelivered, statusCauses[code]
		}
	}
	return provider.Pending, provider.Unspecified // submitted and what is not listed
}

var statusCauses = map[string]provider.Cause{
	"1030": provider.NetworkError,
	"1040": provider.UnknownNumber, // unknown prefix
	"1050": provider.Blocked,
	"1060": provider.NoCredit, // account barred
	"1070": provider.NoCredit,
	"1100": provider.NetworkError,
	"1120": provider.BadSender,
	"1160": provider.Blocked, // not in the account's list
	"1170": provider.UnknownNumber,
	"1180": provider.Absent,
	"1190": provider.UnknownNumber,
	"1200": provider.NetworkError, // portability
	"1210": provider.Spam,
	"1220": provider.Absent, // busy
	"1230": provider.NetworkError,
	"1240": provider.OptedOut,
	"1250": provider.NetworkError,
	"1251": provider.NetworkError,
	"1260": provider.NetworkError,
	"1270": provider.Blocked,
	"1280": provider.Blocked,
	"1282": provider.Spam,    // policy or content
	"1290": provider.Blocked, // the recipient's prepaid plan is empty
	"1300": provider.UnknownNumber,
	"1310": provider.NotMobile,
	"1331": provider.NetworkError,
	"1360": provider.Expired,
	"1420": provider.BadSender,
	"1430": provider.UnknownNumber,
	"1470": provider.Blocked, // fraud rules of the account
	"1472": provider.Blocked,
	"1473": provider.Spam, // artificially inflated traffic
	"1474": provider.Blocked,
	"1475": provider.Blocked,
	"1476": provider.BadSender, // do not originate
	"1480": provider.BadSender, // entity id
	"1481": provider.BadSender, // header id
	"1482": provider.Spam,      // content filter
	"1483": provider.Blocked,   // no consent
	"1484": provider.Blocked,
	"2001": provider.Spam,
}
