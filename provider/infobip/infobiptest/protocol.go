// Package infobiptest is the server side of Infobip's SMS API for scripted carriers: it reads
// messages as strictly as Infobip documents them, answers in the same formats, keeps logs, and
// calls back.
// It is written from the documentation and shares no code with the adapter.
package infobiptest

import (
	"net/http"

	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// Config is the account that the server knows.
type Config struct {
	// Key is the API key.
	Key string
	// Subscription is where reports of messages without an address go; empty for nowhere.
	Subscription string
	// User and Password are sent to the Subscription and with messages of subscribers, and so is
	// the header field Header with Secret. Empty for none. An address in a message is called
	// without them.
	User, Password string
	Header, Secret string
}

// protocol is Infobip's API.
type protocol struct{ cfg Config }

var (
	_ webtest.Protocol      = protocol{}
	_ webtest.ExtraRequests = protocol{}
)

// New returns the API's protocol. It also answers lookups in the logs.
func New(cfg Config) webtest.Protocol { return protocol{cfg} }

// status is the state of a message.
type status struct {
	GroupID     int    `json:"groupId"`
	GroupName   string `json:"groupName"`
	ID          int    `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

var (
	pending   = status{1, "PENDING", 26, "PENDING_ACCEPTED", "Message sent to next instance"}
	rejected  = status{5, "REJECTED", 52, "REJECTED_DESTINATION", "Invalid destination address"}
	noCredit  = status{5, "REJECTED", 12, "REJECTED_NOT_ENOUGH_CREDITS", "Not enough credits"}
	delivered = status{3, "DELIVERED", 5, "DELIVERED_TO_HANDSET", "Message delivered to handset"}
	failed    = status{
		2, "UNDELIVERABLE", 9, "UNDELIVERABLE_NOT_DELIVERED", "Message sent not delivered",
	}
)

// Write answers a message.
func (protocol) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	state := pending
	switch v.Reply {
	case providertest.Reject:
		state = rejected
	case providertest.Refuse:
		state = noCredit
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		webtest.WriteJSON(w, http.StatusTooManyRequests, map[string]any{
			"errorCode": "E429", "description": "Too many requests sent.",
			"action":     "Check request rate limit.",
			"violations": []any{}, "resources": []any{},
		})
		return
	case providertest.Accept, providertest.Lose, providertest.Cut:
	}
	webtest.WriteJSON(w, http.StatusOK,
		map[string]any{"bulkId": "2034072219640523072", "messages": []map[string]any{{
			"messageId": idOf(s), "status": state, "destination": s.To[1:],
			"details": map[string]int{"messageCount": s.Parts},
		}}})
}

// idOf is the id of a message: the caller's, or one that the server makes.
func idOf(s *webtest.Submit) string {
	if s.Key != "" {
		return s.Key
	}
	return s.Reference
}

// ServeExtra answers lookups in the logs by message id.
func (p protocol) ServeExtra(
	w http.ResponseWriter, r *http.Request, _ []byte, known []webtest.Submit,
) bool {
	if r.Method != http.MethodGet || r.URL.Path != "/sms/3/logs" {
		return false
	}
	if r.Header.Get("Authorization") != "App "+p.cfg.Key {
		webtest.WriteJSON(w, http.StatusUnauthorized, map[string]string{"errorCode": "E401"})
		return true
	}
	list := []map[string]any{}
	for _, s := range known {
		id := idOf(&s)
		if id == "" || id != r.URL.Query().Get("messageId") {
			continue
		}
		state := pending
		switch s.Reply {
		case providertest.Accept, providertest.Lose:
		case providertest.Refuse:
			state = noCredit
		case providertest.Reject:
			state = rejected
		case providertest.Throttle, providertest.Cut:
			continue
		}
		list = append(list, map[string]any{
			"messageId": id, "destination": s.To[1:], "sender": s.From, "status": state,
			"messageCount": s.Parts,
			"content":      map[string]string{"text": s.Text},
		})
	}
	webtest.WriteJSON(w, http.StatusOK, map[string]any{"results": list})
	return true
}
