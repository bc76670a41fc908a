package twilio

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// The answer to a callback: no instructions. Without it Twilio reports an error for inbound messages.
const (
	emptyTwiML = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`
	twiMLType  = "text/xml; charset=utf-8"
)

// Hear reads a status callback or an inbound message. Twilio's scheme has no time and no nonce: a
// repeated callback has the same signature and says the same.
func (c *Channel) Hear(call *provider.Callback) (provider.Heard, error) {
	if !verify(call, c.cfg.AuthTokens) {
		return provider.Heard{}, provider.ErrForged
	}
	f, err := readFields(call)
	if err != nil {
		return provider.Heard{}, err
	}
	heard := provider.Heard{Once: call.Get(signatureHeader), Answer: emptyTwiML, AnswerType: twiMLType}
	reference := f.first("MessageSid", "SmsSid")
	status := f.first("MessageStatus")
	switch {
	case reference == "":
		return provider.Heard{}, fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	case len(reference) > provider.MaxReference:
		return provider.Heard{}, fmt.Errorf("%w: the message's name is too long", provider.ErrMalformed)
	case status != "" && status != "received" && status != "receiving":
		heard.Receipts = []provider.Receipt{receipt(call, f, reference, status)}
	case f.first("SmsStatus", "MessageStatus") == "received":
		heard.Inbound = inbound(call, f, reference)
	}
	return heard, nil
}

func receipt(call *provider.Callback, f fields, reference, status string) provider.Receipt {
	r := provider.Receipt{
		Reference: reference, Key: web.KeyOf(call.URL), State: states[status], Code: web.Bounded(status), At: call.At,
	}
	code := f.first("ErrorCode")
	if code != "" {
		r.Code += "/" + web.Bounded(code)
	}
	if r.State == provider.Undelivered {
		r.Cause = causes[code]
		if status == "canceled" {
			r.Cause = provider.Deleted
		}
	}
	return r
}

// inbound leaves out messages of other networks that share the API, whose addresses begin with a scheme such
// as "whatsapp:".
func inbound(call *provider.Callback, f fields, reference string) []provider.Inbound {
	from, to := f.first("From"), f.first("To")
	if strings.ContainsRune(from, ':') || strings.ContainsRune(to, ':') {
		return nil
	}
	return []provider.Inbound{{Reference: reference, From: from, To: to, Text: f.first("Body"), At: call.At}}
}

// fields are the parameters of a callback.
type fields map[string]string

// first returns the first of the named parameters that is not empty.
func (f fields) first(names ...string) string {
	for _, name := range names {
		if f[name] != "" {
			return f[name]
		}
	}
	return ""
}

// readFields takes a form, or a JSON object with the same names. The caller has verified it.
func readFields(call *provider.Callback) (fields, error) {
	f := fields{}
	if strings.HasPrefix(call.Get("Content-Type"), "application/json") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(call.Body, &object); err != nil {
			return nil, fmt.Errorf("%w: its JSON is broken", provider.ErrMalformed)
		}
		for name, raw := range object {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			f[name] = text
		}
		return f, nil
	}
	form, err := url.ParseQuery(string(call.Body))
	if err != nil {
		return nil, fmt.Errorf("%w: its form is broken", provider.ErrMalformed)
	}
	for name := range form {
		f[name] = form.Get(name)
	}
	return f, nil
}
