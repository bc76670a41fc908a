// Package sms knows what fits into one short message: the two alphabets that
// every network carries, the national language tables that some do, how a longer text is cut into
// segments, and how a character is written on the wire.
//
// It is pure and has no idea of a channel or a protocol. Adapters use it to
// encode, package dispatch to count what a message will be billed, and the
// segments command to show both. All segments of a message are written with the same tables, although the
// standard would allow each its own: a text is then one choice, which can be counted, explained and repeated.
package sms
