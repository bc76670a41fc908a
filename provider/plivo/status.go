package plivo

import "dispatcher/provider"

// states are the values of Status. What is not here is Pending.
var states = map[string]provider.ReceiptState{
	"delivered": provider.Delivered, "read": provider.Delivered,
	"undelivered": provider.Undelivered, "failed": provider.Undelivered, "rejected": provider.Undelivered,
}

// causes are the values of ErrorCode (Messaging, Error Codes).
var causes = map[string]provider.Cause{
	"10":   provider.Unspecified,   // invalid message
	"20":   provider.NetworkError,  // network error
	"30":   provider.Spam,          // spam detected
	"40":   provider.BadSender,     // invalid source number
	"50":   provider.UnknownNumber, // invalid destination number
	"60":   provider.NetworkError,  // loop detected
	"70":   provider.UnknownNumber, // destination permanently unavailable
	"80":   provider.Absent,        // destination temporarily unavailable
	"90":   provider.NetworkError,  // no route
	"100":  provider.Blocked,       // prohibited by carrier
	"110":  provider.Unspecified,   // message too long
	"200":  provider.OptedOut,      // STOP
	"201":  provider.BadSender,     // US toll-free number to Canada
	"420":  provider.Expired,       // expired in Plivo's queue
	"450":  provider.Blocked,       // destination country not enabled
	"900":  provider.NoCredit,      // insufficient credit
	"1000": provider.Unspecified,   // unknown
}
