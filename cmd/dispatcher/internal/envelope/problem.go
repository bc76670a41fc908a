package envelope

// Code says in one word of a closed list why a record cannot be used. It is the reason of the dead
// row, a header of the dead letter and a label of a metric.
type Code string

// Codes that Decode finds from the record alone.
const (
	TooLarge       Code = "too_large"       // the record is larger than MaxBytes
	BadJSON        Code = "bad_json"        // the record is not one JSON object in UTF-8
	UnknownField   Code = "unknown_field"   // a field is not part of the envelope
	DuplicateField Code = "duplicate_field" // a field occurs twice, so two readers could differ
	BadID          Code = "bad_id"          // the id is missing or not 1 to 64 printable characters
	BadNumber      Code = "bad_number"      // the recipient is missing or not an E.164 number
	NoText         Code = "no_text"         // the text is missing or empty
	BadField       Code = "bad_field"       // another field has the wrong type or form
)

// Codes that later steps give to messages which are valid envelopes.
const (
	Expired         Code = "expired"           // the deadline had passed when the record was read
	TooManySegments Code = "too_many_segments" // the text needs more segments than the route allows
	NoRoute         Code = "no_route"          // no route matches the message
	BadSender       Code = "bad_sender"        // no network can show the sender
	BlockedNumber   Code = "blocked_number"    // nothing is sent to such numbers
	Conflict        Code = "conflict"          // the id was used before for a different message
	Unstorable      Code = "unstorable"        // the ledger refused it although it is valid
	// CountryNotAllowed: the routing document allows only some countries, and the number is of none of
	// them.
	CountryNotAllowed Code = "country_not_allowed"
)

// Problem is why a record cannot be used.
type Problem struct {
	Code Code
	// Detail is a sentence for the producer's developer. It is bounded and never contains a phone
	// number or a text.
	Detail string
	// Field is the field of the envelope that is wrong; empty for the record as a whole.
	Field string
}

// Rejects reports whether the message is rejected because of its destination. Then the record
// itself is valid.
func (c Code) Rejects() bool { return c == BlockedNumber || c == CountryNotAllowed }

// String is for logs: the code and the detail.
func (p *Problem) String() string { return string(p.Code) + ": " + p.Detail }
