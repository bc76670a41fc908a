package twilio

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio's scheme; HMAC-SHA1 is not broken.
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// The answer to a callback: no instructions. Without it Twilio reports an error for inbound
// messages.
const (
	emptyTwiML = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`
	twiMLType  = "text/xml; charset=utf-8"
)

// ReadCallback reads a status callback or an inbound message. Twilio's scheme has no time and no
// nonce: a repeated callback has the same signature and says the same.
func (c *Channel) ReadCallback(call *provider.Callback) (provider.CallbackContent, error) {
	parameters, ok := verify(call, c.cfg.AuthTokens, c.cfg.SharedKeys)
	if !ok {
		return provider.CallbackContent{}, provider.ErrForged
	}
	if !web.IsCallbackURL(digested.ReplaceAllString(call.URL, ""), c.cfg.Callback) {
		return provider.CallbackContent{},
			fmt.Errorf("%w: its address is not ours", provider.ErrMalformed)
	}
	content := provider.CallbackContent{
		ReplayID: call.Get(signatureHeader), Answer: emptyTwiML, AnswerType: twiMLType,
	}
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
		return provider.CallbackContent{},
			fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	case !messagePattern.MatchString(reference):
		return provider.CallbackContent{},
			fmt.Errorf("%w: the message's SID has another form", provider.ErrMalformed)
	case status != "" && status != "received" && status != "receiving":
		content.Receipts = []provider.Receipt{receipt(call, f, reference, status)}
	case f.first("SmsStatus", "MessageStatus") == "received":
		content.Inbound = inbound(call, f, reference)
	}
	return content, nil
}

// digested matches the digest that Twilio appends for a body other than a form.
var digested = regexp.MustCompile(`[?&]bodySHA256=[0-9a-f]{64}$`)

func receipt(call *provider.Callback, f fields, reference, status string) provider.Receipt {
	r := provider.Receipt{
		Reference: reference, Key: web.CallbackKey(call.URL), State: states[status],
		Code: web.SafeCode(status), At: call.At,
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

// inbound ignores messages of other networks that share the API, whose addresses begin with a
// scheme such as "whatsapp:".
func inbound(call *provider.Callback, f fields, reference string) []provider.Inbound {
	from, to := f.first("From"), f.first("To")
	if strings.ContainsRune(from, ':') || strings.ContainsRune(to, ':') {
		return nil
	}
	return []provider.Inbound{
		{Reference: reference, From: from, To: to, Text: f.first("Body"), At: call.At},
	}
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

// readFields reads the form whose signed parameters are given or, without them, a JSON object with
// the same names. Which of the two it is depends on what was signed, because the content type is
// not signed. The caller has verified the signature.
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
		if len(values) != 1 || !namePattern.MatchString(name) {
			return nil, fmt.Errorf("%w: it has a field that Twilio does not send",
				provider.ErrMalformed)
		}
		f[name] = values[0]
	}
	if f.first("MessageSid", "SmsSid") == "" {
		return f, nil // it names no message, so it is ignored
	}
	if !agrees(f, *parameters) {
		return nil, fmt.Errorf("%w: what was signed may have been cut into other fields",
			provider.ErrMalformed)
	}
	return f, nil
}

// signatureHeader is the canonical name of the signature's header field.
const signatureHeader = "X-Twilio-Signature"

// verify checks X-Twilio-Signature ("Secure webhooks"): the base64 of an HMAC over the URL and the
// sorted parameters of a form. A body other than a form is signed through its SHA-256, which is in
// the query as bodySHA256. The HMAC is keyed with the account's auth token, by SHA-1, or with a
// shared key ("Sign webhooks with shared keys"), by SHA-256 or SHA-1 as the account's webhook
// setting says. parameters are those of a form; nil if the body is signed through its digest.
func verify(c *provider.Callback, tokens, sharedKeys []string) (parameters *string, genuine bool) {
	given, err := base64.StdEncoding.Strict().DecodeString(c.Get(signatureHeader))
	if err != nil || len(given) == 0 {
		return nil, false
	}
	parameters, ok := signedParameters(c)
	if !ok {
		return nil, false
	}
	for _, address := range urlVariants(c.URL) {
		text := address
		if parameters != nil {
			text += *parameters
		}
		by := func(algorithm func() hash.Hash, keys []string) {
			genuine = web.SignedByAny(keys, given, func(key string) []byte {
				mac := hmac.New(algorithm, []byte(key))
				mac.Write([]byte(text))
				return mac.Sum(nil)
			}) || genuine
		}
		by(sha1.New, tokens)
		by(sha1.New, sharedKeys)
		by(sha256.New, sharedKeys)
	}
	return parameters, genuine
}

// signedParameters is the signed text after the URL: the fields of a form, or nil if the URL
// contains the digest of the body; false if that is the digest of another body.
func signedParameters(c *provider.Callback) (parameters *string, ok bool) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, false
	}
	if query := u.Query(); query.Has("bodySHA256") {
		return nil, hmac.Equal([]byte(web.HexSHA256(c.Body)), []byte(query.Get("bodySHA256")))
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return nil, false
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(form)) {
		values := slices.Clone(form[key])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			b.WriteString(key)
			b.WriteString(value)
		}
	}
	text := b.String()
	return &text, true
}

// urlVariants are the ways in which Twilio may have written the URL that it signed: as it is
// configured, without its port, and with the usual port of its scheme.
func urlVariants(address string) []string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return []string{address}
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return []string{address, scheme + "://" + host[:i] + path}
	}
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return []string{address, scheme + "://" + host + port + path}
}
