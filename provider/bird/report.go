package bird

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"dispatcher/provider"
)

// readReport reads a status report or a forwarded message of the messages endpoint: fields in the query of a GET,
// or in the form of a POST.
func readReport(callback *provider.Callback) (provider.CallbackContent, error) {
	fields, err := fieldsOf(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	switch {
	case fields.Has("status"):
		return readStatus(fields, callback)
	case fields.Has("originator") && fields.Has("body"):
		return readForwarded(fields, callback)
	}
	return provider.CallbackContent{}, nil
}

func fieldsOf(callback *provider.Callback) (url.Values, error) {
	_, text, _ := strings.Cut(callback.URL, "?")
	if callback.Method == http.MethodPost && len(callback.Body) > 0 {
		text = string(callback.Body)
	}
	fields, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("its fields: %w", provider.ErrMalformed)
	}
	return fields, nil
}

func readStatus(fields url.Values, callback *provider.Callback) (provider.CallbackContent, error) {
	receipt := describe(fields.Get("status"), fields.Get("statusReason"), fields.Get("statusErrorCode"))
	receipt.Reference, receipt.Key, receipt.At = fields.Get("id"), keyOf(fields.Get("reference")), callback.At
	if !plainID(receipt.Reference) {
		return provider.CallbackContent{}, fmt.Errorf("it has no id: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Receipts: []provider.Receipt{receipt}}, nil
}

func readForwarded(fields url.Values, callback *provider.Callback) (provider.CallbackContent, error) {
	in := provider.Inbound{
		Reference: fields.Get("id"), From: number(fields.Get("originator")), To: number(fields.Get("recipient")),
		Text: fields.Get("body"), At: callback.At,
	}
	if in.From == "" || in.To == "" {
		return provider.CallbackContent{}, fmt.Errorf("it has no number: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Inbound: []provider.Inbound{in}}, nil
}

// keyOf returns a reference that can be a Submission.Key; others are of somebody else.
func keyOf(reference string) string {
	const length = 32
	if len(reference) != length || strings.Trim(reference, "0123456789abcdef") != "" {
		return ""
	}
	return reference
}

// number puts the plus before a number that is long enough to be one; short codes and names stay.
func number(text string) string {
	const shortest = 7
	if len(text) >= shortest && strings.Trim(text, "0123456789") == "" {
		return "+" + text
	}
	return text
}
