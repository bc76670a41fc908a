// Package twiliotest is the server side of Twilio's Messages API for scripted carriers, with an
// independent implementation of its callback signatures.
package twiliotest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"dispatcher/provider/providertest"
	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// Config is what the account of the scripted carrier has.
type Config struct {
	AccountSID, KeySID, KeySecret string
	// AuthToken signs callbacks.
	AuthToken string
}

// New returns the protocol. References have Twilio's format if the carrier's Config has Reference.
func New(cfg Config) webtest.Protocol { return &protocol{cfg} }

// Reference is the SID of the n-th message, for webtest.Config.
func Reference(n uint64) string { return fmt.Sprintf("SM%032x", n) }

type protocol struct{ cfg Config }

var number = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// Read reads a request that creates a message, and refuses what Twilio would refuse.
func (p *protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if err := p.admit(r); err != nil {
		return webtest.Submit{}, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return webtest.Submit{}, errors.New("the body is not a form")
	}
	for name, values := range form {
		if !parameters[name] || len(values) != 1 {
			return webtest.Submit{},
				fmt.Errorf("parameter %s is unknown, or stands there twice", name)
		}
	}
	if err := check(form); err != nil {
		return webtest.Submit{}, err
	}
	// the fragment is for Twilio alone
	callback, _, _ := strings.Cut(form.Get("StatusCallback"), "#")
	return webtest.Submit{
		To: form.Get("To"), From: form.Get("From"), Text: form.Get("Body"),
		Key: webtest.KeyIn(callback), Callback: callback,
		Parts: sms.Count(form.Get("Body"), sms.Reference8).Segments,
	}, nil
}

// admit checks the request without its body.
func (p *protocol) admit(r *http.Request) error {
	user, password, ok := r.BasicAuth()
	switch {
	case r.Method != http.MethodPost ||
		r.URL.Path != "/2010-04-01/Accounts/"+p.cfg.AccountSID+"/Messages.json":
		return fmt.Errorf("20404: %s of another resource", r.Method)
	case !ok || user != p.cfg.KeySID || password != p.cfg.KeySecret:
		return errors.New("20003: wrong credentials")
	case r.Header.Get("Content-Type") != "application/x-www-form-urlencoded":
		return errors.New("the content type is not a form")
	}
	return nil
}

var parameters = map[string]bool{
	"To": true, "From": true, "MessagingServiceSid": true, "Body": true, "StatusCallback": true,
	"ValidityPeriod": true,
	"SmartEncoded":   true,
}

func check(form url.Values) error {
	switch n := utf8.RuneCountInString(form.Get("Body")); {
	case !number.MatchString(form.Get("To")):
		return errors.New("21211: To is not a number")
	case form.Get("From") == "" && form.Get("MessagingServiceSid") == "":
		return errors.New("21603: From is missing")
	case n == 0:
		return errors.New("21602: Body is missing")
	case n > 1600:
		return errors.New("21617: Body is too long")
	}
	if text := form.Get("ValidityPeriod"); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 36000 {
			return errors.New("90007: ValidityPeriod is out of range")
		}
	}
	if text := form.Get("StatusCallback"); text != "" {
		if u, err := url.Parse(text); err != nil || u.Host == "" {
			return errors.New("21609: StatusCallback is not a URL")
		}
	}
	return nil
}

// Write answers in the formats of the Message resource and of Twilio's errors.
func (p *protocol) Write(w http.ResponseWriter, submit *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "application/json")
	switch v.Reply {
	case providertest.Reject:
		writeFault(w, http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+submit.To)
	case providertest.Refuse:
		writeFault(w, http.StatusForbidden, 20005, "Account not active")
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		writeFault(w, http.StatusTooManyRequests, 20429, "Too Many Requests")
	default:
		webtest.WriteJSON(w, http.StatusCreated, p.message(submit))
	}
}

func (p *protocol) message(submit *webtest.Submit) map[string]any {
	return map[string]any{
		"account_sid": p.cfg.AccountSID, "api_version": "2010-04-01", "body": submit.Text,
		"date_created": submit.At.UTC().Format(http.TimeFormat), "date_sent": nil,
		"date_updated": submit.At.UTC().Format(http.TimeFormat), "direction": "outbound-api",
		"error_code": nil, "error_message": nil, "from": submit.From, "num_media": "0",
		"num_segments": strconv.Itoa(submit.Parts), "price": nil, "price_unit": nil,
		"sid": submit.Reference, "status": "queued",
		"to": submit.To, "uri": "/2010-04-01/Accounts/" + p.cfg.AccountSID + "/Messages/" +
			submit.Reference + ".json",
	}
}

func writeFault(w http.ResponseWriter, status, code int, message string) {
	webtest.WriteJSON(w, status, map[string]any{
		"code": code, "message": message,
		"more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code), "status": status,
	})
}
