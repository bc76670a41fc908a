package bird

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// channels writes and reads the Channels API.
type channels struct{ cfg Config }

var _ web.API = channels{}

// outgoing is the body of POST /workspaces/{workspace}/channels/{channel}/messages.
type outgoing struct {
	Sender    *sender  `json:"sender,omitempty"`
	Receiver  receiver `json:"receiver"`
	Body      body     `json:"body"`
	Reference string   `json:"reference,omitempty"`
}

type sender struct {
	Connector identifier `json:"connector"`
}

type receiver struct {
	Contacts []identifier `json:"contacts"`
}

type identifier struct {
	Key   string `json:"identifierKey,omitempty"`
	Value string `json:"identifierValue"`
}

type body struct {
	Type string `json:"type"`
	Text struct {
		Text string `json:"text"`
	} `json:"text"`
}

// Compose writes a submission. Without a sender Bird uses the one of the channel. Bird chooses the
// alphabet.
func (c channels) Compose(s *provider.Submission) (*web.Request, error) {
	out := outgoing{
		Reference: s.Key, Receiver: receiver{
			Contacts: []identifier{{Key: "phonenumber", Value: s.To}},
		},
	}
	out.Body.Type, out.Body.Text.Text = "text", s.Text
	if from := cmp.Or(s.From, c.cfg.From); from != "" {
		out.Sender = &sender{Connector: identifier{Value: from}}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	path := "/workspaces/" + c.cfg.Workspace + "/channels/" + c.cfg.Channel + "/messages"
	return &web.Request{Method: http.MethodPost, URL: path, Header: c.cfg.header(), Body: text}, nil
}

// Classify reads an answer. A message is Rejected if Bird blames the recipient alone: sender and
// body may suit another provider. If the sender is at fault, the answer is about the sender,
// whatever else is at fault. Faults of the recipient often show only in a later event.
func (c channels) Classify(a *web.Answer) provider.Result {
	var answer struct {
		ID      string                     `json:"id"`
		Code    string                     `json:"code"`
		Details map[string]json.RawMessage `json:"details"` // by the field that is at fault
	}
	readable := json.Unmarshal(a.Body, &answer) == nil
	if a.Status/100 == 2 {
		if readable && web.PlainID(answer.ID) {
			return provider.Result{Outcome: provider.Accepted, Reference: answer.ID}
		}
		return result(a, uncertain, "unreadable")
	}
	invalid := a.Status == http.StatusUnprocessableEntity || a.Status == http.StatusBadRequest
	if !readable || answer.Code == "" || !invalid {
		return byStatus(a, answer.Code)
	}
	switch {
	case blamesOnly(answer.Details, "receiver"):
		return result(a, badRecipient, answer.Code)
	case blamesOnly(answer.Details, "receiver", "body"):
		return result(a, badText, answer.Code)
	case blamesOnly(answer.Details, "receiver", "sender", "body"):
		return result(a, badSender, answer.Code)
	}
	return result(a, badRequest, answer.Code)
}

// blamesOnly reports whether all fields that are at fault belong to one of these.
func blamesOnly(details map[string]json.RawMessage, owners ...string) bool {
	for field := range details {
		field = strings.TrimPrefix(field, ".")
		if !slices.ContainsFunc(owners,
			func(owner string) bool { return strings.HasPrefix(field, owner) }) {
			return false
		}
	}
	return len(details) > 0
}
