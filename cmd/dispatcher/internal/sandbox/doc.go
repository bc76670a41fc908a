// Package sandbox plays carriers on this machine: SMPP and the HTTP APIs of the vendors for which there is an
// adapter, each with a profile of how it answers and what receipts it sends.
//
// It writes a routing document that uses them, with accounts and secrets of its own, so that routing, receipts and
// alarms can be tried without a contract. Nothing is sent to anybody: carriers listen on loopback and call only the address
// of the receipts listener. What an API looks like is the business of the vendor's test package.
package sandbox
