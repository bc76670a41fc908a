// Package sinchtest is the server side of Sinch's SMS REST API for scripted carriers: it reads
// batches as strictly as Sinch documents them, answers in the same formats, lists the batches it
// took, and signs callbacks.
// It is written from the documentation and shares no code with the adapter.
package sinchtest

import (
	"net/http"
	"strconv"
	"time"

	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// Config is the account that the server knows.
type Config struct {
	Plan, Token string
	// Secret signs callbacks; empty leaves them unsigned, as Sinch does by default.
	Secret string
}

// protocol is Sinch's API.
type protocol struct{ cfg Config }

var (
	_ webtest.Protocol      = protocol{}
	_ webtest.ExtraRequests = protocol{}
)

// New returns the API's protocol. It also answers lookups by client_reference.
func New(cfg Config) webtest.Protocol { return protocol{cfg} }

// Write answers a batch.
func (protocol) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	switch v.Reply {
	case providertest.Reject:
		webtest.WriteJSON(w, http.StatusBadRequest,
			problem{"syntax_constraint_violation", "Invalid recipient " + s.To})
	case providertest.Refuse:
		webtest.WriteJSON(w, http.StatusForbidden,
			problem{"forbidden", "The service plan may not send"})
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		webtest.WriteJSON(w, http.StatusTooManyRequests,
			problem{"too_many_requests", "Rate limit exceeded"})
	case providertest.Accept, providertest.Lose, providertest.Cut:
		webtest.WriteJSON(w, http.StatusCreated, stored(s))
	}
}

// problem is the body of a refusal.
type problem struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// batch is a batch as the API returns it.
type batch struct {
	ID              string    `json:"id"`
	To              []string  `json:"to"`
	From            string    `json:"from"`
	Canceled        bool      `json:"canceled"`
	Body            string    `json:"body"`
	Type            string    `json:"type"`
	CreatedAt       time.Time `json:"created_at"`
	ModifiedAt      time.Time `json:"modified_at"`
	ClientReference string    `json:"client_reference,omitempty"`
}

func stored(s *webtest.Submit) batch {
	id := s.Reference
	if id == "" { // taken, but its answer was lost
		id = "unanswered-" + strconv.Itoa(s.Number)
	}
	return batch{
		ID: id, To: []string{s.To[1:]}, From: s.From, Body: s.Text, Type: "mt_text",
		CreatedAt: s.At.UTC(), ModifiedAt: s.At.UTC(), ClientReference: s.Key,
	}
}

// ServeExtra lists batches by client_reference.
func (p protocol) ServeExtra(
	w http.ResponseWriter, r *http.Request, _ []byte, known []webtest.Submit,
) bool {
	if r.Method != http.MethodGet || r.URL.Path != p.path() {
		return false
	}
	if r.Header.Get("Authorization") != "Bearer "+p.cfg.Token {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	list := []batch{}
	for _, s := range known {
		taken := s.Reply == providertest.Accept || s.Reply == providertest.Lose
		if taken && s.Key == r.URL.Query().Get("client_reference") {
			list = append(list, stored(&s))
		}
	}
	webtest.WriteJSON(w, http.StatusOK,
		map[string]any{"count": len(list), "page": 0, "page_size": len(list), "batches": list})
	return true
}

func (p protocol) path() string { return "/xms/v1/" + p.cfg.Plan + "/batches" }
