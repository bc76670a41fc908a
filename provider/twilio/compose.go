package twilio

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

const (
	// longestText is how many characters a body may have (error 21617).
	longestText = 1600
	// longestValidity and shortestValidity bound ValidityPeriod (error 90007).
	longestValidity  = 36_000 * time.Second
	shortestValidity = time.Second
)

// retries makes Twilio call again, up to five times within 15 seconds, after a 5xx too ("Webhook connection overrides"); by itself it
// does so once, and only when it gets no connection. A fragment is neither sent nor signed.
const retries = "#rc=5&rp=ct,rt,5xx"

// api writes requests and reads answers. It is pure but for the clock that now reads.
type api struct {
	cfg    Config
	path   string
	header http.Header
	now    func() time.Time
}

func newAPI(cfg Config, now func() time.Time) *api {
	credentials := base64.StdEncoding.EncodeToString([]byte(cfg.KeySID + ":" + cfg.KeySecret))
	return &api{cfg: cfg, now: now, path: "/2010-04-01/Accounts/" + cfg.AccountSID + "/Messages.json", header: http.Header{
		"Authorization": {"Basic " + credentials},
		"Content-Type":  {"application/x-www-form-urlencoded"},
		"Accept":        {"application/json"},
	}}
}

// Compose creates a Message. Smart encoding is switched off, so that the message is sent, and billed, in the
// alphabet that its text needs.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	switch n := utf8.RuneCountInString(s.Text); {
	case n == 0:
		return nil, web.Unsendable("there is no text")
	case n > longestText:
		return nil, errors.New("the text has more than 1600 characters")
	}
	form := url.Values{"To": {s.To}, "Body": {s.Text}, "SmartEncoded": {"false"}}
	if err := a.sender(form, s.From); err != nil {
		return nil, err
	}
	if ends := s.Ends(); !ends.IsZero() {
		left := min(max(ends.Sub(a.now()), shortestValidity), longestValidity)
		form.Set("ValidityPeriod", strconv.Itoa(int(left/time.Second)))
	}
	if a.cfg.receipts() {
		form.Set("StatusCallback", web.WithKey(a.cfg.Callback, s.Key)+retries)
	}
	return &web.Request{Method: http.MethodPost, URL: a.path, Header: a.header, Body: []byte(form.Encode())}, nil
}

// sender names who sends. A sender that a message names has to belong to the messaging service, if there is one.
func (a *api) sender(form url.Values, from string) error {
	if a.cfg.MessagingService != "" {
		form.Set("MessagingServiceSid", a.cfg.MessagingService)
	} else if from == "" {
		from = a.cfg.From
	}
	if from != "" {
		form.Set("From", from)
	} else if a.cfg.MessagingService == "" {
		return errors.New("neither the message nor the channel names a sender")
	}
	return nil
}
