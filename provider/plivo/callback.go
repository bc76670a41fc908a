package plivo

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// unconfirmed is the code of a receipt of which only its address was signed.
const unconfirmed = "unconfirmed"

// ReadCallback reads a status callback or an inbound message. Neither scheme has a time; the nonce tells a callback from
// all others.
//
// A callback with signature V2 alone says nothing that can be believed, because whoever has seen one could change its
// body. It becomes a Pending receipt without key, cause and code, which moves no message to any other state, and an
// inbound message of such a callback is dropped.
func (c *Channel) ReadCallback(call *provider.Callback) (provider.CallbackContent, error) {
	how, nonce := verify(call, slices.Concat(c.cfg.AuthTokens, c.cfg.MainTokens))
	if how == forged {
		return provider.CallbackContent{}, provider.ErrForged
	}
	if !web.IsCallbackURL(call.URL, c.cfg.Callback) {
		return provider.CallbackContent{}, fmt.Errorf("%w: its address is not ours", provider.ErrMalformed)
	}
	form, err := url.ParseQuery(string(call.Body))
	if err != nil {
		return provider.CallbackContent{}, fmt.Errorf("%w: its form is broken", provider.ErrMalformed)
	}
	reference, status := form.Get("MessageUUID"), form.Get("Status")
	if !aUUID.MatchString(reference) {
		return provider.CallbackContent{}, fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	}
	if how == proven && !agrees(form, sorted(form, "", "")) {
		return provider.CallbackContent{}, fmt.Errorf("%w: what was signed may have been cut into other fields", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: nonce}
	if how == hinted {
		content.ReplayID = "V2 " + nonce // whoever drops its signature V3 must not make the genuine one a repeated one
	}
	switch {
	case how == hinted && status != "":
		content.Receipts = []provider.Receipt{{Reference: reference, State: provider.Pending, Code: unconfirmed, At: call.At}}
	case how == hinted: // an inbound message that anybody may have changed
	case status != "":
		content.Receipts = []provider.Receipt{receipt(call, form)}
	case form.Get("From") != "" && form.Has("Text"):
		content.Inbound = []provider.Inbound{{
			Reference: reference, From: international(form.Get("From")), To: international(form.Get("To")), Text: form.Get("Text"), At: call.At,
		}}
	}
	return content, nil
}

func receipt(call *provider.Callback, form url.Values) provider.Receipt {
	status, code := form.Get("Status"), form.Get("ErrorCode")
	r := provider.Receipt{
		Reference: form.Get("MessageUUID"), Key: web.CallbackKey(call.URL), State: states[status], Code: web.SafeCode(status), At: call.At,
	}
	if code = strings.TrimLeft(code, "0"); code != "" { // "000" stands for none
		r.Code += "/" + web.SafeCode(code)
	}
	if r.State == provider.Undelivered {
		r.Cause = causes[code]
	}
	return r
}

// shortCode is the longest number that is no number of E.164: Plivo writes both without a plus.
const shortCode = 6

// international puts a plus before a number that is more than a short code.
func international(number string) string {
	if len(number) <= shortCode || strings.Trim(number, "0123456789") != "" {
		return number
	}
	return "+" + number
}
