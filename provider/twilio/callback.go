package twilio

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// The answer to a callback: no instructions. Without it Twilio reports an error for inbound messages.
const (
	emptyTwiML = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`
	twiMLType  = "text/xml; charset=utf-8"
)

// ReadCallback reads a status callback or an inbound message. Twilio's scheme has no time and no nonce: a
// repeated callback has the same signature and says the same.
func (c *Channel) ReadCallback(call *provider.Callback) (provider.CallbackContent, error) {
	parameters, ok := verify(call, c.cfg.AuthTokens, c.cfg.SharedKeys)
	if !ok {
		return provider.CallbackContent{}, provider.ErrForged
	}
	if !web.IsCallbackURL(digested.ReplaceAllString(call.URL, ""), c.cfg.Callback) {
		return provider.CallbackContent{}, fmt.Errorf("%w: its address is not ours", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: call.Get(signatureHeader), Answer: emptyTwiML, AnswerType: twiMLType}
	if parameters != nil && ofOtherNetwork(*parameters) {
		return content, nil
	}
	f, err := readFields(call, parameters)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	reference := f.first("MessageSid", "SmsSid")
	status := f.first("MessageStatus")
	switch {
	case reference == "":
		return provider.CallbackContent{}, fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	case !aMessage.MatchString(reference):
		return provider.CallbackContent{}, fmt.Errorf("%w: the message's SID has another form", provider.ErrMalformed)
	case status != "" && status != "received" && status != "receiving":
		content.Receipts = []provider.Receipt{receipt(call, f, reference, status)}
	case f.first("SmsStatus", "MessageStatus") == "received":
		content.Inbound = inbound(call, f, reference)
	}
	return content, nil
}

// digested is how Twilio appends the digest of a body that is no form.
var digested = regexp.MustCompile(`[?&]bodySHA256=[0-9a-f]{64}$`)

func receipt(call *provider.Callback, f fields, reference, status string) provider.Receipt {
	r := provider.Receipt{
		Reference: reference, Key: web.CallbackKey(call.URL), State: states[status], Code: web.SafeCode(status), At: call.At,
	}
	code := f.first("ErrorCode")
	if code != "" {
		r.Code += "/" + web.SafeCode(code)
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

// readFields takes a form whose signed parameters are given, or, with none, a JSON object with the same names. Which of the
// two it is depends on what was signed: the content type is not. The caller has verified it.
func readFields(call *provider.Callback, parameters *string) (fields, error) {
	f := fields{}
	if parameters == nil {
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
	for name, values := range form {
		if len(values) != 1 || !aName.MatchString(name) {
			return nil, fmt.Errorf("%w: it has a field that Twilio does not send", provider.ErrMalformed)
		}
		f[name] = values[0]
	}
	if f.first("MessageSid", "SmsSid") == "" {
		return f, nil // it names no message, so that it has no meaning
	}
	if !agrees(f, *parameters) {
		return nil, fmt.Errorf("%w: what was signed may have been cut into other fields", provider.ErrMalformed)
	}
	return f, nil
}
