package sinch

import (
	"encoding/json"
	"net/http"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answer is what the API says to a submission: the batch, or a code. The text beside a code may repeat the
// number and is not read.
type answer struct {
	ID   string `json:"id"`
	Code string `json:"code"`
}

// Classify reads the answer to a submission by https://developers.sinch.com/docs/sms/api-reference/status-codes.
// Statuses 5xx promise nothing about the batch and are Unknown.
func (a api) Classify(got *web.Answer) provider.Result {
	var said answer
	readable := json.Unmarshal(got.Body, &said) == nil
	switch got.Status {
	case http.StatusOK, http.StatusCreated:
		if !readable || said.ID == "" || len(said.ID) > maxID {
			return got.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: said.ID}
	case http.StatusBadRequest:
		return badRequest(got, said.Code)
	case http.StatusPaymentRequired:
		return got.Verdict(provider.Refused, said.Code, "the account has no credit")
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusUnsupportedMediaType:
		return got.Verdict(provider.Refused, said.Code, "the API has no such address; region or service plan are wrong")
	}
	if r, ok := got.Plain(said.Code); ok {
		return r
	}
	return got.Unreadable(said.Code)
}

// maxID bounds what is believed to be an id.
const maxID = 128

// badRequest tells a message that the API does not take from a request that it does not understand. Both say that
// no batch was made.
func badRequest(got *web.Answer, code string) provider.Result {
	switch code {
	case "syntax_constraint_violation", "syntax_invalid_parameter_format":
		return got.Verdict(provider.Rejected, code, "a field of the message breaks the rules of the API")
	}
	return got.Verdict(provider.Refused, code, "the API does not understand the request")
}
