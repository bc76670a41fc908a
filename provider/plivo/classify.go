package plivo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// queued is the answer to a message that was taken, as far as it matters here.
type queued struct {
	UUIDs []string `json:"message_uuid"`
}

// refusal is the body of every answer that is no success. Error is a sentence, for some faults an object that holds
// one: Plivo has no codes here.
type refusal struct {
	Error json.RawMessage `json:"error"`
}

// Classify reads the answer to a submission.
func (*api) Classify(a *web.Answer) provider.Result {
	switch a.Status {
	case http.StatusAccepted, http.StatusOK, http.StatusCreated:
		var m queued
		if err := json.Unmarshal(a.Body, &m); err != nil || len(m.UUIDs) == 0 || m.UUIDs[0] == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.UUIDs[0]}
	case http.StatusBadRequest:
		return blame(a)
	case http.StatusPaymentRequired:
		return a.Verdict(provider.Refused, "", "the account has no credit")
	case http.StatusNotFound:
		if sentence(a) != "" {
			return a.Verdict(provider.Refused, "", "there is no such account")
		}
	case http.StatusMethodNotAllowed:
		return a.Verdict(provider.Refused, "", "the API does not take messages here")
	}
	if r, ok := a.Plain(""); ok {
		return r
	}
	return a.Unreadable("")
}

// ofChannel are the words by which a sentence blames something that another channel may do better, and why. Account, powerpack and
// callback are at fault for every message, sender, text and country for the one message. The first that occurs decides.
var ofChannel = []struct {
	word, why string
	unfit     bool
}{
	{"credit", "the account has no credit", false},
	{"balance", "the account has no credit", false},
	{"powerpack", "the powerpack cannot be used", false},
	{"src", "the sender is not valid", true},
	{"source", "the sender is not valid", true},
	{"country", "the account may not send to this country", true},
	{"region", "the account may not send to this region", true},
	{"account", "the account may not send this", false},
	{"url", "the callback URL is not valid", false},
	{"text", "the API does not take such a text", true},
}

// ofRecipient are the words for the recipient. "447700900123 is not a valid phone number" is how Plivo
// documents that it has validated the destination.
var ofRecipient = []string{"dst", "destination", "phone"}

// blame reads a 400: "a parameter is missing or is invalid", so nothing was queued. The message is at fault only when
// the sentence says of the recipient, and of nothing that is the channel's, that it is not valid.
func blame(a *web.Answer) provider.Result {
	said := sentence(a)
	if said == "" {
		return a.Unreadable("")
	}
	words := strings.FieldsFunc(strings.ToLower(said), func(c rune) bool { return c < 'a' || c > 'z' })
	for _, p := range ofChannel {
		if slices.Contains(words, p.word) {
			r := a.Verdict(provider.Refused, p.word, p.why)
			r.Unfit = p.unfit
			return r
		}
	}
	invalid := slices.Contains(words, "invalid") || slices.Contains(words, "not") && slices.Contains(words, "valid")
	switch toOne := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(ofRecipient, w) }); {
	case toOne && invalid:
		return a.Verdict(provider.Rejected, "dst", "the recipient is not valid")
	case toOne:
		return a.Unfit("", "the account may not send to this recipient")
	}
	return a.Verdict(provider.Refused, "", "a parameter is missing or not valid")
}

// sentence is what Plivo says about a fault; empty when it says nothing that can be read.
func sentence(a *web.Answer) string {
	var r refusal
	if json.Unmarshal(a.Body, &r) != nil || string(r.Error) == "null" {
		return ""
	}
	return strings.Trim(string(r.Error), `"`)
}
