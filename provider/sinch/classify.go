package sinch

import (
	"encoding/json"
	"net/http"
	"regexp"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answer is what the API says to a submission: the batch, or a code. The text beside a code may repeat the
// number; all that is looked for in it is which field it is about.
type answer struct {
	ID   string `json:"id"`
	Code string `json:"code"`
	Text string `json:"text"`
}

// Classify reads the answer to a submission by https://developers.sinch.com/docs/sms/api-reference/status-codes.
// Statuses 5xx promise nothing about the batch and are Unknown.
func (a api) Classify(got *web.Answer) provider.Result {
	var said answer
	readable := json.Unmarshal(got.Body, &said) == nil
	switch got.Status {
	case http.StatusOK, http.StatusCreated:
		if !readable || said.ID == "" {
			return got.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: said.ID}
	case http.StatusBadRequest:
		return badRequest(got, &said)
	case http.StatusPaymentRequired:
		return got.Result(web.Refused("the account has no credit"), said.Code)
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusUnsupportedMediaType:
		return got.Result(web.Refused("the API has no such address; region or service plan are wrong"), said.Code)
	}
	if v, ok := forbidden[said.Code]; ok && got.Status == http.StatusForbidden {
		return got.Result(v, said.Code)
	}
	if r, ok := got.ByStatus(said.Code); ok {
		return r
	}
	return got.Unreadable(said.Code)
}

// forbidden are the codes of a 403 that do not blame the account, as blocked_account and missing_callback_url do.
var forbidden = map[string]web.Meaning{
	"illegal_number_type": web.Unfit("the region takes no numbers of this type"), // "send to a different MSISDN"
	"llegal_number_type":  web.Unfit("the region takes no numbers of this type"), // as older guides spell it
	"unknown_campaign":    web.BadSender("the campaign is not that of the sender"),
}

// ofRecipient, ofSender, ofText and ofChannel are how a text names the field that is at fault: the recipient's number, the sender,
// the text of the message, or what the channel writes into every request. The codes beside it are the same for all fields.
var (
	ofRecipient = regexp.MustCompile(`(?i)\brecipients?\b|\bto\[|["'\x60\[]to["'\x60\]]`)
	ofSender    = regexp.MustCompile(`(?i)\bfrom\b|\bsender\b`)
	ofText      = regexp.MustCompile(`(?i)\bbody\b`)
	ofChannel   = regexp.MustCompile(`(?i)\bexpire_at\b|\bcallback_url\b|\bdelivery_report\b|\bclient_reference\b|\bparameters\b`)
)

// badRequest tells a recipient that the API does not take from a request that it does not understand. Both say that
// no batch was made, if it is the API that says so: a 400 without a code of Sinch's may come from anybody. The channel is at
// fault unless the text is about the recipient and no other field. A limit of its own to the length of a text is about the one
// message; validity and callback are the channel's.
func badRequest(got *web.Answer, said *answer) provider.Result {
	switch said.Code {
	case "":
		return got.Unreadable("")
	case "syntax_constraint_violation", "syntax_invalid_parameter_format":
		switch {
		case ofChannel.MatchString(said.Text):
		case ofSender.MatchString(said.Text):
			return got.Result(web.BadSender("the sender breaks the rules of the API"), said.Code)
		case ofText.MatchString(said.Text):
			return got.Result(web.Unfit("the text breaks the rules of the API"), said.Code)
		case ofRecipient.MatchString(said.Text):
			return got.Result(web.Rejected("the recipient breaks the rules of the API"), said.Code)
		}
		return got.Result(web.Refused("a field breaks the rules of the API"), said.Code)
	}
	return got.Result(web.Refused("the API does not understand the request"), said.Code)
}
