// Package webtest is a scripted carrier with an HTTP API: a peer on loopback that takes submits, answers as
// its behaviour says, keeps a log, and calls back with receipts and inbound messages.
//
// What the API looks like is a vendor's Shape. Tests of adapters and the sandbox use it; it sends
// nothing to anybody but to the callback address that a submit or a Config names.
package webtest
