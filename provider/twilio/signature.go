package twilio

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio's scheme; HMAC-SHA1 is not broken.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"dispatcher/provider"
)

// signatureHeader holds the signature under its canonical name.
const signatureHeader = "X-Twilio-Signature"

// verify checks X-Twilio-Signature ("Validating Signatures from Twilio"): the base64 of an HMAC-SHA1, keyed with the
// auth token, over the URL and the sorted parameters of a form. A body that is no form is signed through its
// SHA-256, which stands in the query as bodySHA256.
func verify(c *provider.Callback, tokens []string) bool {
	given := []byte(c.Get(signatureHeader))
	parameters, ok := signedParameters(c)
	if !ok || len(given) == 0 {
		return false
	}
	genuine := false
	for _, token := range tokens {
		for _, address := range spellings(c.URL) {
			mac := hmac.New(sha1.New, []byte(token))
			mac.Write([]byte(address + parameters))
			want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
			genuine = hmac.Equal([]byte(want), given) || genuine
		}
	}
	return genuine
}

// signedParameters is what is signed beside the URL; false when the body is not the one whose digest the URL names.
func signedParameters(c *provider.Callback) (string, bool) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", false
	}
	if query := u.Query(); query.Has("bodySHA256") {
		sum := sha256.Sum256(c.Body)
		return "", hmac.Equal([]byte(hex.EncodeToString(sum[:])), []byte(query.Get("bodySHA256")))
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return "", false
	}
	var b strings.Builder
	for _, key := range sortedKeys(form) {
		values := slices.Clone(form[key])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			b.WriteString(key)
			b.WriteString(value)
		}
	}
	return b.String(), true
}

func sortedKeys(form url.Values) []string {
	keys := make([]string, 0, len(form))
	for key := range form {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// spellings are the ways in which Twilio may have written the URL that it signed: as it is configured, without
// its port, and with the usual port of its scheme.
func spellings(address string) []string {
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
