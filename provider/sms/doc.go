// Package sms knows what fits into one short message: the two alphabets that
// every network carries, how a longer text is cut into segments, and how a
// character is written on the wire.
//
// It is pure and has no idea of a channel or a protocol. Adapters use it to
// encode, package dispatch to count what a message will be billed, and the
// segments command to show both. National language shift tables (3GPP TS 23.038
// annex A) are out of scope: few networks carry them and none of our carriers'
// contracts bills by them.
package sms
