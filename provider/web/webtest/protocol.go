package webtest

import (
	"net/http"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Protocol is a vendor's API as its server speaks it. Its methods are called from several goroutines.
type Protocol interface {
	// Read takes a submit apart. An error is answered 400 and logged as unread: the adapter under test
	// wrote something that the vendor would not take, or its credentials were wrong.
	Read(r *http.Request, body []byte) (Submit, error)
	// Write answers a submit as the vendor does; v is not Lose or Cut.
	Write(w http.ResponseWriter, s *Submit, v providertest.Answer)
	// Receipt is the call that tells what became of a submit, signed as the vendor signs; nil when
	// the submit wants none.
	Receipt(s *Submit, r Receipt) (*http.Request, error)
	// Inbound is the call that hands over a message of a subscriber; nil when the API has none.
	Inbound(callback string, in provider.Inbound) (*http.Request, error)
}

// ExtraRequests is a Protocol that also answers what is no submit, such as a look at what became of one.
type ExtraRequests interface {
	// ServeExtra answers a request and reports whether it was one of its own. known are the submits so far.
	ServeExtra(w http.ResponseWriter, r *http.Request, body []byte, known []Submit) bool
}

// Submit is one entry of the log.
type Submit struct {
	Number int // from 1, in the order of arrival
	At     time.Time
	// Method and Proto are those of its request, such as POST and HTTP/1.1.
	Method, Proto string
	// To is the recipient as an E.164 number with its plus.
	To, From, Text string
	Key            string // Submission.Key, where the API carries it
	Parts          int    // as the vendor counts segments; 1 unless Read says so
	Callback       string // where receipts go; empty for nowhere
	Reference      string // the id that the carrier gives when it accepts; set before Write
	Reply          providertest.Reply
}

// Receipt is what a submit gets later, or each of its parts where the Protocol is PartProtocol.
type Receipt struct {
	// Part is the one part that it is about, counted from 1; 0 is all of them. Without a PartProtocol shape it means nothing.
	Part  int
	State provider.ReceiptState
	Code  string // the vendor's word; empty is the usual one for State
}
