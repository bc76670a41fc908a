package bird

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// messages writes and reads the SMS messages endpoint.
type messages struct{ cfg Config }

var _ web.API = messages{}

// message is the body of POST /messages.
type message struct {
	Originator string   `json:"originator"`
	Recipients []string `json:"recipients"` // numbers without plus
	Body       string   `json:"body"`
	Datacoding string   `json:"datacoding"`
	Reference  string   `json:"reference,omitempty"`
	ReportURL  string   `json:"reportUrl,omitempty"`
	Validity   int64    `json:"validity,omitempty"` // seconds
}

var errNoSender = errors.New("the message names no sender, and the channel has none of its own")

// Compose writes a submission. It names the alphabet, because the endpoint would otherwise replace
// characters and bill another text than was counted.
func (m messages) Compose(s *provider.Submission) (*web.Request, error) {
	out := message{
		Originator: strings.TrimPrefix(cmp.Or(s.From, m.cfg.From), "+"),
		Recipients: []string{strings.TrimPrefix(s.To, "+")},
		Body:       s.Text, Datacoding: "plain", Reference: s.Key,
	}
	if out.Originator == "" {
		return nil, errNoSender
	}
	if sms.Count(s.Text, sms.Reference8).Alphabet != sms.GSM7 {
		out.Datacoding = "unicode"
	}
	if ends := s.Ends(); !ends.IsZero() {
		out.Validity = seconds(min(time.Until(ends), longestValidity))
	}
	if m.cfg.acceptsCallbacks() && s.Key != "" { // reports need a reference
		out.ReportURL = m.cfg.Callback
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	return &web.Request{
		Method: http.MethodPost, URL: "/messages", Header: m.cfg.header(), Body: body,
	}, nil
}

// Classify reads an answer. A message was taken if the answer is a 2xx with an id.
func (m messages) Classify(a *web.Answer) provider.Result {
	var answer struct {
		ID     string `json:"id"`
		Errors []struct {
			Code      int    `json:"code"`
			Parameter string `json:"parameter"`
		} `json:"errors"`
	}
	readable := json.Unmarshal(a.Body, &answer) == nil
	if a.Status/100 == 2 {
		if readable && web.PlainID(answer.ID) && len(answer.Errors) == 0 {
			return provider.Result{Outcome: provider.Accepted, Reference: answer.ID}
		}
		return result(a, uncertain, "unreadable")
	}
	if !readable || len(answer.Errors) == 0 {
		return byStatus(a, "")
	}
	first := answer.Errors[0]
	return byCode(a, first.Code, first.Parameter)
}

func (c *Config) header() http.Header {
	return http.Header{
		"Authorization": {"AccessKey " + c.AccessKey}, "Content-Type": {"application/json"},
		"Accept": {"application/json"},
	}
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(int64(math.Ceil(d.Seconds())), 1) }
