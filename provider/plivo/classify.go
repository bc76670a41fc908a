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

// parameters are the names by which a sentence says what is wrong with a request, and who is at fault then.
var parameters = []struct {
	name    string
	outcome provider.Outcome
	why     string
}{
	{"src", provider.Refused, "the sender is not valid"},
	{"source", provider.Refused, "the sender is not valid"},
	{"powerpack", provider.Refused, "the powerpack cannot be used"},
	{"credit", provider.Refused, "the account has no credit"},
	{"balance", provider.Refused, "the account has no credit"},
	{"dst", provider.Rejected, "the recipient is not valid"},
	{"destination", provider.Rejected, "the recipient is not valid"},
	{"text", provider.Rejected, "the text is not valid"},
}

// blame reads a 400: "a parameter is missing or is invalid", so nothing was queued. The message is at fault when
// the sentence names the recipient or the text, and no parameter that is the channel's.
func blame(a *web.Answer) provider.Result {
	said := sentence(a)
	if said == "" {
		return a.Unreadable("")
	}
	words := strings.FieldsFunc(strings.ToLower(said), func(c rune) bool { return c < 'a' || c > 'z' })
	for _, p := range parameters {
		if slices.Contains(words, p.name) {
			return a.Verdict(p.outcome, p.name, p.why)
		}
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
