package plivo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// errUnproven refuses a callback that anybody who has seen another one could have made.
var errUnproven = fmt.Errorf("%w: signature V2 does not cover its content, and its address "+
	"does not prove that we made it for such content", provider.ErrForged)

// ReadCallback reads a status callback or an inbound message. Neither scheme signs a time; the
// nonce is the ReplayID.
//
// Signature V2 alone does not cover what the callback says: whoever has seen one could change it.
// Then the address must have our proof. The address of a message proves a receipt for this message
// alone, and the address without a key proves inbound messages.
func (c *Channel) ReadCallback(call *provider.Callback) (provider.CallbackContent, error) {
	how, nonce := verify(call, slices.Concat(c.cfg.AuthTokens, c.cfg.MainTokens))
	if how == forged {
		return provider.CallbackContent{}, provider.ErrForged
	}
	if !web.IsCallbackURL(call.URL, c.cfg.Callback) {
		return provider.CallbackContent{},
			fmt.Errorf("%w: its address is not ours", provider.ErrMalformed)
	}
	form, err := url.ParseQuery(string(call.Body))
	if err != nil {
		return provider.CallbackContent{},
			fmt.Errorf("%w: its form is broken", provider.ErrMalformed)
	}
	reference, status := form.Get("MessageUUID"), form.Get("Status")
	content := provider.CallbackContent{ReplayID: nonce}
	switch {
	case !uuidPattern.MatchString(reference):
		return provider.CallbackContent{},
			fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	case how == allSigned:
		if !agrees(form, sorted(form, "", "")) {
			return provider.CallbackContent{},
				fmt.Errorf("%w: what was signed may have been cut into other fields",
					provider.ErrMalformed)
		}
	default:
		if key, ok := c.cfg.proofs().Key(call.URL); !ok || (key != "") != (status != "") {
			return provider.CallbackContent{}, errUnproven
		}
		// A copy without signature V3 must not make the genuine callback count as repeated.
		content.ReplayID = "V2 " + nonce
	}
	switch {
	case status != "":
		r := receipt(call, form)
		if how == addressSigned {
			r.Reference = "" // it could name another message; the proof is for the key
		}
		content.Receipts = []provider.Receipt{r}
	case form.Get("From") != "" && form.Has("Text"):
		content.Inbound = []provider.Inbound{{
			Reference: reference, From: web.International(form.Get("From")),
			To: web.International(form.Get("To")), Text: form.Get("Text"), At: call.At,
		}}
	}
	return content, nil
}

func receipt(call *provider.Callback, form url.Values) provider.Receipt {
	status, code := form.Get("Status"), form.Get("ErrorCode")
	r := provider.Receipt{
		Reference: form.Get("MessageUUID"), Key: web.CallbackKey(call.URL), State: states[status],
		Code: web.SafeCode(status), At: call.At,
	}
	if code = strings.TrimLeft(code, "0"); code != "" { // "000" means none
		r.Code += "/" + web.SafeCode(code)
	}
	if r.State == provider.Undelivered {
		r.Cause = causes[code]
	}
	return r
}

// The headers of callbacks, under their canonical names. "Ma" stands for the main account, whose
// token signs in addition to that of the subaccount.
const (
	v3Header, v3MainHeader, v3Nonce = "X-Plivo-Signature-V3", "X-Plivo-Signature-Ma-V3",
		"X-Plivo-Signature-V3-Nonce"
	v2Header, v2MainHeader, v2Nonce = "X-Plivo-Signature-V2", "X-Plivo-Signature-Ma-V2",
		"X-Plivo-Signature-V2-Nonce"
)

// trust is how much of a callback its signature covers.
type trust uint8

const (
	forged        trust = iota
	addressSigned       // V2: the address without its query
	allSigned           // V3: everything
)

// verify returns how far a callback can be trusted, and its nonce. If it has V3 signatures, they
// alone decide: a valid V2 does not help a callback with invalid V3.
func verify(c *provider.Callback, tokens []string) (trust, string) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return forged, ""
	}
	base := u.Scheme + "://" + u.Host + u.EscapedPath()
	if given := signatures(c, v3Header, v3MainHeader); len(given) > 0 {
		nonce := c.Get(v3Nonce)
		signed, ok := signedV3(base, u.RawQuery, c.Body)
		if ok && noncePattern.MatchString(nonce) && matches(given, signed+"."+nonce, tokens) {
			return allSigned, nonce
		}
		return forged, ""
	}
	nonce := c.Get(v2Nonce)
	if noncePattern.MatchString(nonce) &&
		matches(signatures(c, v2Header, v2MainHeader), base+nonce, tokens) {
		return addressSigned, nonce
	}
	return forged, ""
}

// signedV3 is the text that V3 signs before the nonce: the address, "?", the query as sorted pairs,
// ".", and names and values of the form in the order of the names. The dot appears only between
// query and form.
func signedV3(base, rawQuery string, body []byte) (string, bool) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", false
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", false
	}
	if len(query) == 0 && len(form) == 0 {
		return base, true
	}
	parts := make([]string, 0, 2)
	if len(query) > 0 {
		parts = append(parts, sorted(query, "=", "&"))
	}
	if len(form) > 0 {
		parts = append(parts, sorted(form, "", ""))
	}
	return base + "?" + strings.Join(parts, "."), true
}

// sorted joins names and values, ordered by name and then by value.
func sorted(values url.Values, between, after string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		of := slices.Clone(values[name])
		slices.Sort(of)
		for _, value := range of {
			list = append(list, name+between+value)
		}
	}
	return strings.Join(list, after)
}

// signatures collects the signatures in the headers, each of which may hold several.
func signatures(c *provider.Callback, names ...string) []string {
	var list []string
	for _, name := range names {
		for text := range strings.SplitSeq(c.Get(name), ",") {
			if text = strings.TrimSpace(text); text != "" {
				list = append(list, text)
			}
		}
	}
	return list
}

// maxSignatures bounds how many signatures of one callback are checked; Plivo sends one or two in a
// header.
const maxSignatures = 8

// matches reports whether one of the signatures is the HMAC-SHA256 of a text under one of the
// tokens.
func matches(given []string, text string, tokens []string) bool {
	if len(given) > maxSignatures {
		return false
	}
	genuine := false
	for _, token := range tokens {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(text))
		want := []byte(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, signature := range given {
			genuine = hmac.Equal(want, []byte(signature)) || genuine
		}
	}
	return genuine
}
