package plivo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"dispatcher/provider"
)

// The headers of callbacks, under their canonical names. "Ma" stands for the main account, whose token signs them
// beside the one of the subaccount.
const (
	v3Header, v3MainHeader, v3Nonce = "X-Plivo-Signature-V3", "X-Plivo-Signature-Ma-V3", "X-Plivo-Signature-V3-Nonce"
	v2Header, v2MainHeader, v2Nonce = "X-Plivo-Signature-V2", "X-Plivo-Signature-Ma-V2", "X-Plivo-Signature-V2-Nonce"
)

// trust is how much of a callback its signature covers.
type trust uint8

const (
	forged trust = iota
	hinted       // V2: the address without its query
	proven       // V3: everything
)

// verify says how far a callback can be trusted, and gives its nonce. A callback that has signatures V3 is
// measured by them alone: V2 does not help one that fails them.
func verify(c *provider.Callback, tokens []string) (trust, string) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return forged, ""
	}
	base := u.Scheme + "://" + u.Host + u.EscapedPath()
	if given := signatures(c, v3Header, v3MainHeader); len(given) > 0 {
		nonce := c.Get(v3Nonce)
		signed, ok := signedV3(base, u.RawQuery, c.Body)
		if ok && aNonce.MatchString(nonce) && matches(given, signed+"."+nonce, tokens) {
			return proven, nonce
		}
		return forged, ""
	}
	nonce := c.Get(v2Nonce)
	if aNonce.MatchString(nonce) && matches(signatures(c, v2Header, v2MainHeader), base+nonce, tokens) {
		return hinted, nonce
	}
	return forged, ""
}

// signedV3 is what V3 signs before the nonce: the address, "?", the query as sorted pairs, ".", and names and values of
// the form in the order of the names. The point stands between query and form only.
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

// sorted joins names and values in the order of the names, and of the values of one name.
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

// signatures collects what stands in the headers, each of which may hold several.
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

// maxSignatures bounds how many signatures of one callback are looked at; Plivo sends one or two in a header.
const maxSignatures = 8

// matches reports whether one of the signatures is the HMAC-SHA256 of a text under one of the tokens.
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
