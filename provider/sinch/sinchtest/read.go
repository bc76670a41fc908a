package sinchtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// request is a batch as the API takes it.
type request struct {
	From            string                       `json:"from"`
	To              []string                     `json:"to"`
	Body            string                       `json:"body"`
	Type            string                       `json:"type"`
	Parameters      map[string]map[string]string `json:"parameters"`
	DeliveryReport  string                       `json:"delivery_report"`
	CallbackURL     string                       `json:"callback_url"`
	ClientReference string                       `json:"client_reference"`
	ExpireAt        *time.Time                   `json:"expire_at"`
}

// maxBody is the maximum length of a text in characters.
const maxBody = 2000

var (
	number      = regexp.MustCompile(`^\+?[0-9]{7,15}$`)
	placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)
)

// Read reads a batch.
func (p protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != p.path():
		return webtest.Submit{}, fmt.Errorf("%s %s is not an address of the API", r.Method, r.URL.Path)
	case r.Header.Get("Authorization") != "Bearer "+p.cfg.Token:
		return webtest.Submit{}, errors.New("wrong token")
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("not sent as JSON")
	}
	var b request
	if err := webtest.DecodeStrict(body, &b); err != nil {
		return webtest.Submit{}, errors.New("syntax_invalid_json")
	}
	if err := b.check(time.Now()); err != nil {
		return webtest.Submit{}, err
	}
	text, err := b.expand()
	if err != nil {
		return webtest.Submit{}, err
	}
	s := webtest.Submit{
		To: plus(b.To[0]), From: b.From, Text: text, Key: b.ClientReference,
		Parts: sms.Count(text, sms.Reference8).Segments,
	}
	if b.DeliveryReport != "none" {
		s.Callback = b.CallbackURL
	}
	return s, nil
}

func (r *request) check(now time.Time) error {
	switch {
	case len(r.To) != 1 || !number.MatchString(r.To[0]):
		return errors.New("to is not one number")
	case r.Body == "" || len([]rune(r.Body)) > maxBody:
		return errors.New("body is empty or too long")
	case r.Type != "mt_text":
		return errors.New("type is unknown")
	case r.ExpireAt != nil && (r.ExpireAt.Before(now) || r.ExpireAt.After(now.Add(72*time.Hour))):
		return errors.New("expire_at is not within the next three days")
	}
	switch r.DeliveryReport {
	case "none":
	case "per_recipient", "per_recipient_final", "full", "summary":
		if u, err := url.Parse(r.CallbackURL); err != nil || !u.IsAbs() {
			return errors.New("missing_callback_url")
		}
	default:
		return errors.New("delivery_report is unknown")
	}
	return nil
}

// expand replaces parameters in the text, in one pass.
func (r *request) expand() (string, error) {
	var err error
	text := placeholder.ReplaceAllStringFunc(r.Body, func(found string) string {
		value, ok := r.Parameters[placeholder.FindStringSubmatch(found)[1]]["default"]
		if !ok {
			err = errors.New("unmatched parameter")
		}
		return value
	})
	return text, err
}

func plus(number string) string {
	if number[0] == '+' {
		return number
	}
	return "+" + number
}
