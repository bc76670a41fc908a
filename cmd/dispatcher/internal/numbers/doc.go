// Package numbers answers what follows from the digits of a phone number: its country, whether it
// is a premium-rate number, and which E.164 number a national form means.
//
// The numbering plans are those of nyaruka/phonenumbers. Parsing a number with them takes tens of
// microseconds, so questions about every message are answered from caches and tables by the
// number's first digits. Nothing here is logged, because a number must not be shown.
package numbers
