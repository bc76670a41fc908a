// Package plivotest is the server side of Plivo's Message API for scripted carriers, with an
// independent implementation of its signatures.
package plivotest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"dispatcher/provider/providertest"
	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// Config is what the account of the scripted carrier has.
type Config struct {
	AuthID, AuthToken string
	// OnlyV2 omits V3 signatures.
	OnlyV2 bool
}

// New returns the protocol. References have Plivo's format if the carrier's Config has Reference.
func New(cfg Config) webtest.Protocol { return &protocol{cfg} }

// Reference is the UUID of the n-th message, for webtest.Config.
func Reference(n uint64) string { return fmt.Sprintf("db3ce55a-7f1d-11e1-8ea7-%012x", n) }

type protocol struct{ cfg Config }

// request is what POST /Message/ takes of an SMS.
type request struct {
	Src       string `json:"src"`
	Powerpack string `json:"powerpack_uuid"`
	Dst       string `json:"dst"`
	Text      string `json:"text"`
	Type      string `json:"type"`
	URL       string `json:"url"`
	Method    string `json:"method"`
	Expiry    *int   `json:"message_expiry"`
	Log       string `json:"log"`
}

var number = regexp.MustCompile(`^[1-9][0-9]{6,13}$`)

// Read reads a request that sends a message, and refuses what Plivo would refuse.
func (p *protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	user, password, ok := r.BasicAuth()
	path := "/Account/" + p.cfg.AuthID + "/Message/"
	switch {
	case r.Method != http.MethodPost || r.URL.Path != path && r.URL.Path != "/v1"+path:
		return webtest.Submit{}, errors.New("not found")
	case !ok || user != p.cfg.AuthID || password != p.cfg.AuthToken:
		return webtest.Submit{}, errors.New("authentication failed")
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("the content type is not JSON")
	}
	var m request
	if err := webtest.DecodeStrict(body, &m); err != nil {
		return webtest.Submit{}, err
	}
	size := sms.Count(m.Text, sms.Reference8)
	if err := m.check(size); err != nil {
		return webtest.Submit{}, err
	}
	return webtest.Submit{
		To: "+" + m.Dst, From: m.Src, Text: m.Text, Key: webtest.KeyIn(m.URL), Callback: m.URL,
		Parts: size.Segments,
	}, nil
}

func (r *request) check(size sms.Size) error {
	switch {
	case !number.MatchString(r.Dst):
		return errors.New("dst is not valid")
	case (r.Src == "") == (r.Powerpack == ""):
		return errors.New("either src or powerpack_uuid is required")
	case r.Text == "" || r.Type != "sms":
		return errors.New("text is required, and the type sms")
	case size.Alphabet == sms.UCS2 && size.Units > 737, size.Units > 1600:
		return errors.New("text is too long")
	case r.Expiry != nil && (*r.Expiry < 5 || *r.Expiry > 10799):
		return errors.New("message_expiry is out of range")
	case r.URL != "" && r.Method != http.MethodPost:
		return errors.New("the method is not POST")
	}
	if u, err := url.Parse(r.URL); err != nil || r.URL != "" && u.Host == "" {
		return errors.New("url is not valid")
	}
	return nil
}

// apiID is in every answer.
const apiID = "db342550-7f1d-11e1-8ea7-1231380bc196"

// Write answers in the formats of Plivo's messages and errors.
func (p *protocol) Write(w http.ResponseWriter, submit *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "application/json")
	switch v.Reply {
	case providertest.Reject:
		writeFault(w, http.StatusBadRequest, "dst "+submit.To+" is not a valid phone number")
	case providertest.Refuse:
		writeFault(w, http.StatusBadRequest, "Insufficient Credit")
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		writeFault(w, http.StatusTooManyRequests, "rate_limit_exceeded")
	default:
		webtest.WriteJSON(w, http.StatusAccepted, map[string]any{
			"api_id": apiID, "message": "message(s) queued",
			"message_uuid": []string{submit.Reference},
		})
	}
}

func writeFault(w http.ResponseWriter, status int, sentence string) {
	webtest.WriteJSON(w, status, map[string]any{"api_id": apiID, "error": sentence})
}
