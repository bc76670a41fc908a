package sinch

import "dispatcher/provider"

// stateOf translates a status and the code beside it, by
// https://developers.sinch.com/docs/sms/api-reference/sms/tag/Delivery-reports. Unknown, which Sinch gives when no
// receipt came from the operator, and words that are not listed stay pending: they say nothing certain.
func stateOf(status string, code int) (provider.ReceiptState, provider.Cause) {
	switch status {
	case "Delivered":
		return provider.Delivered, provider.Unspecified
	case "Aborted", "Cancelled", "Rejected", "Deleted", "Failed", "Expired":
		return provider.Undelivered, causeOf(status, code)
	}
	return provider.Pending, provider.Unspecified
}

// causes are those of the codes of the REST API.
var causes = map[int]provider.Cause{
	402: provider.NetworkError, // unroutable
	403: provider.NetworkError, // internal error
	404: provider.NetworkError, // temporary delivery failure
	406: provider.Expired,      // before it reached the operator
	407: provider.Deleted,      // cancelled by the account
	410: provider.BadSender,    // no default originator
	412: provider.NetworkError, // the account is not provisioned for the region
	413: provider.NoCredit,     // the account is blocked
}

func causeOf(status string, code int) provider.Cause {
	if cause, ok := causes[code]; ok {
		return cause
	}
	switch status {
	case "Expired":
		return provider.Expired
	case "Cancelled", "Deleted":
		return provider.Deleted
	}
	return provider.Unspecified
}
