// Package webtest holds what the tests of all HTTP adapters share, and the other side that they
// talk to.
//
// A Carrier is a scripted HTTP server on loopback: it takes submits, answers as its Behaviour says,
// keeps a log, and calls back with receipts and inbound messages. A vendor's Protocol is the API
// that it speaks. The sandbox runs it, too; it only sends to the callback address that a submit or
// a Config names.
//
// CheckVendor runs the checks that all adapters share on the data of one. The other checks take the
// data of one promise: Requests (golden files), the Check functions on callbacks, Rig (a message
// and its receipts), CheckLookups, CheckFaults and CheckPromises (settings).
package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Protocol is the server side of a vendor's API. Its methods are called from several goroutines.
type Protocol interface {
	// Read reads a submit. An error is answered 400 and logged as unread: the vendor would not
	// accept the request, or the credentials are wrong.
	Read(r *http.Request, body []byte) (Submit, error)
	// Write answers a submit as the vendor does; the reply is not Lose or Cut.
	Write(w http.ResponseWriter, s *Submit, v providertest.Answer)
	// Receipt is the callback with the state of a submit, signed as the vendor signs; nil if the
	// submit wants none.
	Receipt(s *Submit, r Receipt) (*http.Request, error)
	// Inbound is the callback with a message of a subscriber; nil if the API has none.
	Inbound(callback string, in provider.Inbound) (*http.Request, error)
}

// ExtraRequests is a Protocol that also answers requests other than submits, such as lookups.
type ExtraRequests interface {
	// ServeExtra answers a request and reports whether it handled it. known are the submits so far.
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
	Parts          int    // the vendor's count of segments; 1 unless Read sets it
	Callback       string // where receipts go; empty for nowhere
	Reference      string // the carrier's id of an accepted submit; set before Write
	Reply          providertest.Reply
}

// Receipt is a later receipt of a submit, or of each of its parts if the Protocol is a
// PartProtocol.
type Receipt struct {
	// Part is the one part that it is about, counted from 1; 0 is all of them. Without a
	// PartProtocol it has no effect.
	Part  int
	State provider.ReceiptState
	Code  string // the vendor's word; empty is the usual one for State
}

// PartProtocol is a Protocol whose vendor gives each part of a text its own id, and its own
// receipts.
type PartProtocol interface {
	// Part is the submit under the vendor's id of its part i, counted from 0.
	Part(s *Submit, i int) Submit
}

// about lists the submits that a receipt is for: s itself or, with a PartProtocol, its parts.
func about(protocol Protocol, s *Submit, r Receipt) []Submit {
	parted, ok := protocol.(PartProtocol)
	if !ok {
		return []Submit{*s}
	}
	var list []Submit
	for i := range s.Parts {
		if r.Part == 0 || r.Part == i+1 {
			list = append(list, parted.Part(s, i))
		}
	}
	return list
}

// DecodeStrict reads a JSON body into a value that names all fields that the vendor knows.
func DecodeStrict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// KeyIn is the submission's key in a callback URL; empty when it has none.
func KeyIn(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Query().Get("key")
}

// WriteJSON answers with a value, with the content type of JSON unless another one is set. It
// ignores errors: the caller may have gone.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// SetRetryAfter writes into a header field how many seconds the caller should wait, if the answer
// says so.
func SetRetryAfter(w http.ResponseWriter, name string, v providertest.Answer) {
	if v.RetryAfter > 0 {
		w.Header().Set(name, strconv.Itoa(int(v.RetryAfter.Seconds())))
	}
}

// Post is a callback of a carrier; kind is its content type.
func Post(callback, kind string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, callback,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	return r, nil
}
