// Package receive takes what providers tell later: receipts and messages of subscribers.
//
// They come in two ways: over the connections of a channel, or as HTTP requests to the webhook
// listener. Whichever it is, a provider gets its acknowledgement when what it said is in safe
// hands, and calls again otherwise. What a callback says and whether it is genuine is the business
// of the channel's adapter; what a receipt changes is that of package ledger.
package receive
