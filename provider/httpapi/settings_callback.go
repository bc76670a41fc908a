package httpapi

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// readCallback reads the part after the public URL.
func (c *Config) readCallback(_ parser, r *settings.Reader) {
	c.callback = callback{query: readFields(r, "query", inCallback), raw: r.Text("raw")}
	for _, b := range []byte(c.callback.raw) {
		if b <= ' ' || b > '~' || b == '#' {
			r.Failf("raw", "has a character that a URL cannot have")
			break
		}
	}
}

// readVerify reads how callbacks are verified.
func (c *Config) readVerify(p parser, r *settings.Reader) {
	v := &verification{by: r.Text("by"), user: r.Text("user"), prefix: r.Text("prefix")}
	v.secrets = p.live(r, "secret_files")
	v.at, v.time = readPlace(r, "at", []string{"query", "header"}),
		readPlace(r, "time", []string{"query", "header"})
	v.hash, v.decode = settings.Choose(r, "algorithm", hashes),
		settings.Choose(r, "encoding", encodings)
	v.late = r.Duration("late")
	signed := r.Text("signed")
	v.settle(r, signed)
	c.verify = v
}

// maxLate bounds how old a signed callback may be. Repeated messages of subscribers are recognised
// for longer.
const maxLate = 72 * time.Hour

// settle checks that a scheme has what it needs and nothing else, and sets defaults.
func (v *verification) settle(r *settings.Reader, signed string) {
	if v.by != byHMAC && (v.hash != nil || v.decode != nil || v.prefix != "" || signed != "" ||
		v.time != nil || v.late != 0) {
		r.Failf("by", "algorithm, encoding, prefix, signed, time and late belong to hmac")
	}
	switch v.by {
	case bySecret, byHMAC:
		if v.at == nil {
			r.Failf("at", "is missing; it says where the secret or the signature stands")
		}
	case byBasic:
		v.at = &place{kind: "header", name: "Authorization"}
		if v.user == "" {
			r.Failf("user", "is missing")
		}
	case byCertificate:
		if len(v.secrets) > 0 {
			r.Failf("secret_files", "has no use where a certificate is shown")
		}
		return
	default:
		r.Failf("by", "%q is none of secret, basic, hmac, certificate", v.by)
		return
	}
	if len(v.secrets) == 0 {
		r.Failf("secret_files", "is missing")
	}
	if v.by == byHMAC {
		v.settleHMAC(r, signed)
	}
}

func (v *verification) settleHMAC(r *settings.Reader, signed string) {
	if v.hash == nil {
		v.hash = hashes["sha256"]
	}
	if v.decode == nil {
		v.decode = encodings["hex"]
	}
	if signed == "" {
		signed = "{body}"
	}
	if v.late != 0 && (v.time == nil || v.late > maxLate) {
		r.Failf("late", "needs a time, and is at most %s", maxLate)
	}
	v.late = cmp.Or(v.late, web.Tolerance)
	var err error
	if v.signed, err = parseTemplate(signed, inSigned); err != nil {
		r.Fail("signed", err)
	}
	if v.signed.has("time") != (v.time != nil) {
		r.Failf("time", "{time} in signed and a place for it belong together")
	}
}

// live reads the secrets that are valid at the same time.
func (p parser) live(r *settings.Reader, key string) []string {
	return web.Secrets(r, key, p.readFile)
}

// readReceipts reads the positions of a receipt's fields.
func (c *Config) readReceipts(_ parser, r *settings.Reader) {
	list := &receipts{
		each:      readPlace(r, "each", []string{"json"}),
		reference: readPlace(r, "reference", inCallbacks), key: readPlace(r, "key", inCallbacks),
		state: readPlace(r, "state", inCallbacks), code: readPlace(r, "code", inCallbacks),
		states: map[string]provider.ReceiptState{}, causes: map[string]provider.Cause{},
	}
	if list.state == nil {
		r.Failf("state", "is missing")
	}
	if list.reference == nil && list.key == nil {
		r.Failf("reference", "is missing, and so is key; a receipt must say what it is for")
	}
	known := map[string]provider.ReceiptState{
		"pending": provider.Pending, "delivered": provider.Delivered,
		"undelivered": provider.Undelivered,
	}
	for word, name := range words(r, "states") {
		state, ok := known[name]
		if !ok {
			r.Failf("states", "%s: %q is none of pending, delivered, undelivered", word, name)
		}
		list.states[word] = state
	}
	for code, name := range words(r, "causes") {
		if !slices.Contains(provider.Causes, provider.Cause(name)) {
			r.Failf("causes", "%s: %q is none of %v", code, name, provider.Causes)
		}
		list.causes[code] = provider.Cause(name)
	}
	if !list.ends() {
		r.Failf("states", "none of them is delivered")
	}
	c.receipts = list
	c.note(list.each, list.reference, list.key, list.state, list.code)
}

func (r *receipts) ends() bool {
	for _, state := range r.states {
		if state == provider.Delivered {
			return true
		}
	}
	return false
}

// readInbound reads the positions of a subscriber's message.
func (c *Config) readInbound(_ parser, r *settings.Reader) {
	in := &inbound{
		reference: readPlace(r, "reference", inCallbacks), from: readPlace(r, "from", inCallbacks),
		to: readPlace(r, "to", inCallbacks), text: readPlace(r, "text", inCallbacks),
	}
	for key, p := range map[string]*place{"from": in.from, "to": in.to, "text": in.text} {
		if p == nil {
			r.Failf(key, "is missing")
		}
	}
	c.inbound = in
	c.note(in.reference, in.from, in.to, in.text)
}

func (c *Config) readReply(_ parser, r *settings.Reader) {
	c.reply = reply{body: r.Text("body"), contentType: r.Text("type")}
}

// note records the kinds of the places in callbacks.
func (c *Config) note(places ...*place) {
	if c.kinds == nil {
		c.kinds = map[string]bool{}
	}
	for _, p := range places {
		if p != nil {
			c.kinds[p.kind] = true
		}
	}
}

// check finds faults between sections.
func (c *Config) check() error {
	wantsCallbacks := c.receipts != nil || c.inbound != nil
	switch {
	case wantsCallbacks && c.verify == nil:
		return fmt.Errorf("verify: is missing; callbacks of unknown callers are never accepted")
	case c.request.has(ofTime...) && c.LongestValidity == 0:
		return fmt.Errorf("longest_validity: is missing, and the request has a validity")
	case !c.request.has(ofTime...) && c.LongestValidity > 0:
		return fmt.Errorf("longest_validity: the request has no validity")
	case c.request.has("alphabet") && len(c.alphabet) != 2:
		return fmt.Errorf("alphabet: needs a word for gsm7 and one for ucs2")
	case c.SameKeyFor > 0 && !c.request.has("key"):
		return fmt.Errorf("same_key_for: {key} stands nowhere in the request")
	case c.answer.id == nil && c.receipts != nil &&
		(c.receipts.key == nil || c.receipts.reference != nil):
		return fmt.Errorf(
			"receipts: the answer gives no id, so that a receipt must carry the key, and a reference of " +
				"the gateway's own has no use")
	case c.callback.query.has(callbackSecretName) && c.verify.first() == "":
		return fmt.Errorf(
			"callback: {callback_secret} is the first of verify's secret_files, and there is none")
	}
	return c.checkCovered()
}

// checkCovered refuses values that the signature does not cover.
func (c *Config) checkCovered() error {
	if c.verify == nil || c.verify.by != byHMAC {
		return nil
	}
	body := c.kinds["form"] || c.kinds["json"] || c.kinds["regexp"]
	switch {
	case c.kinds["header"]:
		return fmt.Errorf("verify: the signature covers no header field, but one is read")
	case c.kinds["query"] && !c.verify.signed.has("url"):
		return fmt.Errorf("verify: signed does not cover {url}, but the query is read")
	case body && !c.verify.signed.has("body"):
		return fmt.Errorf("verify: signed does not cover {body}, but it is read")
	}
	return c.checkUnambiguous()
}

// checkUnambiguous refuses a signed text in which a form follows an address directly: without a
// separator the same text could be cut into a longer address and a form that lacks its first
// fields.
func (c *Config) checkUnambiguous() error {
	between, follow := c.verify.signed.between("url", "body")
	if follow && (c.kinds["form"] || c.kinds["regexp"]) && addressPattern.MatchString(between) {
		return fmt.Errorf("verify: signed does not show where {url} ends and {body} begins, " +
			"which is a form; " +
			"if the gateway cannot put a line break or a | between them, verify by secret or certificate")
	}
	return nil
}
