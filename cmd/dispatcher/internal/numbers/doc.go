// Package numbers answers what a phone number tells by its digits: in which country it is, whether
// it is a premium-rate one, and what people of a country mean by a number without its country code.
//
// The numbering plans are those of nyaruka/phonenumbers. Parsing a number by them takes tens of
// microseconds, so what is asked for every message is answered from what was learnt of the number's
// first digits. Nothing here is ever logged: a number must not be shown.
package numbers
