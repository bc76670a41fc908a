// Package inbound takes the messages that subscribers send, over the connections of channels and
// from webhooks: it finds out whose they are, recognises keywords such as STOP and START, and has
// them booked in batches.
//
// A provider gets its acknowledgement when a message is durable: until then it has the message, and
// sends it again. Parts are joined, repeated messages dropped and opt-out lists changed by package
// ledger, in the transaction that books them; package kafka carries them to Kafka.
package inbound
