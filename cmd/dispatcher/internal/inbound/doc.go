// Package inbound takes the messages that subscribers send, from the connections of channels and
// from webhooks. It finds the tenant of each, recognises keywords such as STOP and START, and
// stores the messages in the ledger, in batches.
//
// A message is acknowledged when it is durable. Without an acknowledgement its provider sends it
// again. Package ledger joins parts, drops repeated messages and changes opt-out lists, in the
// transaction that records them. Package kafka publishes them.
package inbound
