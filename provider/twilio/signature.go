package twilio

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio's scheme; HMAC-SHA1 is not broken.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/url"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// signatureHeader holds the signature under its canonical name.
const signatureHeader = "X-Twilio-Signature"

// verify checks X-Twilio-Signature ("Secure webhooks"): the base64 of an HMAC over the URL and the sorted parameters of a form.
// A body that is no form is signed through its SHA-256, which stands in the query as bodySHA256. The HMAC is keyed with the
// account's auth token, by SHA-1, or with a shared key ("Sign webhooks with shared keys"), by SHA-256 or SHA-1 as the
// account's webhook setting says. parameters are those of a form; nil when the body is signed through its digest.
func verify(c *provider.Callback, tokens, sharedKeys []string) (parameters *string, genuine bool) {
	given, err := base64.StdEncoding.Strict().DecodeString(c.Get(signatureHeader))
	if err != nil || len(given) == 0 {
		return nil, false
	}
	parameters, ok := signedParameters(c)
	if !ok {
		return nil, false
	}
	for _, address := range spellings(c.URL) {
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

// signedParameters is what is signed beside the URL: the fields of a form, or nil when the URL names the digest of the
// body; false when that is the digest of another one.
func signedParameters(c *provider.Callback) (parameters *string, ok bool) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, false
	}
	if query := u.Query(); query.Has("bodySHA256") {
		sum := sha256.Sum256(c.Body)
		return nil, hmac.Equal([]byte(hex.EncodeToString(sum[:])), []byte(query.Get("bodySHA256")))
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return nil, false
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
	text := b.String()
	return &text, true
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
