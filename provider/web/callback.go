package web

import "net/url"

// keyParameter is the query parameter of callbacks that carries Submission.Key.
const keyParameter = "key"

// WithKey returns a callback URL that names a submission, for providers that return nothing of ours but
// call the URL that a submission brought along. It is empty when callback is.
func WithKey(callback, key string) string {
	if callback == "" || key == "" {
		return callback
	}
	u, err := url.Parse(callback)
	if err != nil {
		return callback
	}
	query := u.Query()
	query.Set(keyParameter, key)
	u.RawQuery = query.Encode()
	return u.String()
}

// CallbackKey returns the Submission.Key that a callback URL names; empty when it names none or nothing
// that could be one. Whether it can be believed is up to the provider's signature: it has to cover the URL.
func CallbackKey(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	key := u.Query().Get(keyParameter)
	if len(key) != keyLength {
		return ""
	}
	for _, c := range []byte(key) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return key
}

// keyLength is what provider.Submission.Key has, in hexadecimal digits.
const keyLength = 32
