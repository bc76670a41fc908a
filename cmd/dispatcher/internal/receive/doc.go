// Package receive takes receipts, and callbacks of providers with receipts or messages of
// subscribers.
//
// Receipts come over the connections of a channel, or as HTTP requests to the webhook listener.
// Either way they are acknowledged when they are durable; without an acknowledgement, the provider
// sends them again. The adapter of the channel parses and authenticates a callback. Package ledger
// decides what a receipt changes.
package receive
