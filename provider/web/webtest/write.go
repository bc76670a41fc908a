package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"dispatcher/provider/providertest"
)

// DecodeStrict reads a JSON body into a value that names all fields that the vendor knows.
func DecodeStrict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// KeyIn is the submission's key in a callback URL; empty when it has none.
func KeyIn(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Query().Get("key")
}

// WriteJSON answers with a value, under the content type of JSON unless another one is set. The caller may have gone,
// which is no fault of the carrier.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// SetRetryAfter writes into a header field how many seconds the caller should wait, when the verdict says so.
func SetRetryAfter(w http.ResponseWriter, name string, v providertest.Answer) {
	if v.RetryAfter > 0 {
		w.Header().Set(name, strconv.Itoa(int(v.RetryAfter.Seconds())))
	}
}

// Post is a call of a carrier; kind is its content type.
func Post(callback, kind string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, callback, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	return r, nil
}
