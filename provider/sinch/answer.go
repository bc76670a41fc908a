package sinch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answer is the API's answer to a submission: the batch, or a code. The text of an error may
// contain the number; it is only searched for the name of the field at fault.
type answer struct {
	ID   string `json:"id"`
	Code string `json:"code"`
	Text string `json:"text"`
}

// Classify reads the answer to a submission by
// https://developers.sinch.com/docs/sms/api-reference/status-codes. A 5xx says nothing about the
// batch and is Unknown.
func (a api) Classify(got *web.Answer) provider.Result {
	var parsed answer
	readable := json.Unmarshal(got.Body, &parsed) == nil
	switch got.Status {
	case http.StatusOK, http.StatusCreated:
		if !readable || parsed.ID == "" {
			return got.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: parsed.ID}
	case http.StatusBadRequest:
		return badRequest(got, &parsed)
	case http.StatusPaymentRequired:
		return got.Result(web.Refused("the account has no credit"), parsed.Code)
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone,
		http.StatusUnsupportedMediaType:
		return got.Result(
			web.Refused("the API has no such address; region or service plan are wrong"), parsed.Code)
	}
	if v, ok := forbidden[parsed.Code]; ok && got.Status == http.StatusForbidden {
		return got.Result(v, parsed.Code)
	}
	if r, ok := got.ByStatus(parsed.Code); ok {
		return r
	}
	return got.Unreadable(parsed.Code)
}

// forbidden are the codes of a 403 that do not blame the account; blocked_account and
// missing_callback_url do.
var forbidden = map[string]web.Meaning{
	// "send to a different MSISDN"
	"illegal_number_type": web.Unfit("the region takes no numbers of this type"),
	// as older guides spell it
	"llegal_number_type": web.Unfit("the region takes no numbers of this type"),
	"unknown_campaign":   web.BadSender("the campaign is not that of the sender"),
}

// ofRecipient, ofSender, ofText and ofChannel match the names of fields in an error's text: the
// recipient's number, the sender, the text of the message, or a field that the channel writes into
// every request. The code is the same for all fields.
var (
	ofRecipient = regexp.MustCompile(`(?i)\brecipients?\b|\bto\[|["'\x60\[]to["'\x60\]]`)
	ofSender    = regexp.MustCompile(`(?i)\bfrom\b|\bsender\b`)
	ofText      = regexp.MustCompile(`(?i)\bbody\b`)
	ofChannel   = regexp.MustCompile(
		`(?i)\bexpire_at\b|\bcallback_url\b|\bdelivery_report\b|\bclient_reference\b|\bparameters\b`)
)

// badRequest distinguishes a refused recipient from a request that the API does not understand. In
// both cases no batch was made, if the answer comes from the API: a 400 without a code of Sinch may
// come from a proxy. The channel is at fault unless the text names the recipient and no other
// field. Sinch's limit on the length of a text is about the message.
func badRequest(got *web.Answer, parsed *answer) provider.Result {
	switch parsed.Code {
	case "":
		return got.Unreadable("")
	case "syntax_constraint_violation", "syntax_invalid_parameter_format":
		switch {
		case ofChannel.MatchString(parsed.Text):
		case ofSender.MatchString(parsed.Text):
			return got.Result(web.BadSender("the sender breaks the rules of the API"), parsed.Code)
		case ofText.MatchString(parsed.Text):
			return got.Result(web.Unfit("the text breaks the rules of the API"), parsed.Code)
		case ofRecipient.MatchString(parsed.Text):
			return got.Result(web.Rejected("the recipient breaks the rules of the API"), parsed.Code)
		}
		return got.Result(web.Refused("a field breaks the rules of the API"), parsed.Code)
	}
	return got.Result(web.Refused("the API does not understand the request"), parsed.Code)
}

// stateOf translates a status and its code, by
// https://developers.sinch.com/docs/sms/api-reference/sms/tag/Delivery-reports. Unknown, which
// Sinch uses if the operator sent no receipt, and unlisted words are Pending: they are not certain.
func stateOf(status string, code int) (provider.ReceiptState, provider.Cause) {
	switch status {
	case "Delivered":
		return provider.Delivered, provider.Unspecified
	case "Aborted", "Cancelled", "Rejected", "Deleted", "Failed", "Expired":
		return provider.Undelivered, causeOf(status, code)
	}
	return provider.Pending, provider.Unspecified
}

// causes has the cause of each code of the REST API.
var causes = map[int]provider.Cause{
	402: provider.NetworkError, // unroutable
	403: provider.NetworkError, // internal error
	404: provider.NetworkError, // temporary delivery failure
	406: provider.Expired,      // before it reached the operator
	407: provider.Deleted,      // cancelled by the account
	410: provider.BadSender,    // no default originator
	412: provider.NetworkError, // the account is not provisioned for the region
	413: provider.NoCredit,     // the account is blocked
}

func causeOf(status string, code int) provider.Cause {
	if cause, ok := causes[code]; ok {
		return cause
	}
	switch status {
	case "Expired":
		return provider.Expired
	case "Cancelled", "Deleted":
		return provider.Deleted
	}
	return provider.Unspecified
}

// Find lists the batches with the key. By default the API lists those of the last 24 hours.
func (c *Channel) Find(ctx context.Context, key string) provider.LookupResult {
	return c.LookUp(ctx, key, c.cfg.lookup(key))
}

func (c *Config) lookup(key string) web.Lookup {
	query := url.Values{"client_reference": {key}, "page_size": {"2"}}
	return web.Lookup{
		Request: &web.Request{
			Method: http.MethodGet, URL: c.path() + "?" + query.Encode(),
			Header: http.Header{"Authorization": {"Bearer " + c.Token}},
		},
		Read: func(body []byte) (provider.LookupResult, int,
			error,
		) {
			return readPage(body, key)
		},
		AbsenceIsCertain: c.AbsenceIsCertain,
	}
}

// page is one page of a list of batches. An answer without the list cannot be used.
type page struct {
	Batches *[]struct {
		ID              string `json:"id"`
		ClientReference string `json:"client_reference"`
	} `json:"batches"`
}

func readPage(body []byte, key string) (found provider.LookupResult, entries int, err error) {
	var list page
	if err := json.Unmarshal(body, &list); err != nil || list.Batches == nil {
		return provider.LookupResult{}, 0, web.ErrNoList
	}
	for _, b := range *list.Batches {
		if b.ClientReference == key && b.ID != "" {
			return provider.LookupResult{State: provider.Taken, Reference: b.ID},
				len(*list.Batches), nil
		}
	}
	return provider.LookupResult{}, len(*list.Batches), nil
}
