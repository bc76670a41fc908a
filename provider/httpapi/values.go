package httpapi

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
)

// Names of placeholders.
const (
	secretName         = "secret"
	callbackSecretName = "callback_secret"
)

// anywhere are the placeholders of fields, whose values are escaped as a whole.
var anywhere = []string{
	"to", "to_digits", "from", "from_digits", "text", "text_hex", "alphabet", "key", "id",
	"attempt",
	"validity_seconds", "validity_minutes", "expires", "callback", "callback_url", secretName,
}

var (
	// inHeaders are those whose values cannot hold a line break.
	inHeaders = []string{"key", "attempt", secretName}
	// inPath are those whose values cannot hold a slash or dots.
	inPath = []string{"to", "to_digits", "key", "attempt"}
	// inCallback are those that the query of the callback URL may have.
	inCallback = []string{"key", "attempt", callbackSecretName}
	// ofTime are those that need to know how long the gateway keeps a message.
	ofTime = []string{"validity_seconds", "validity_minutes", "expires"}
)

// values has what the templates may name of one submission.
type values struct {
	cfg *Config
	s   *provider.Submission
	now time.Time
}

// get is the value of a placeholder; empty when there is none.
func (v *values) get(p part) string {
	switch p.name {
	case "to":
		return v.s.To
	case "to_digits":
		return strings.TrimPrefix(v.s.To, "+")
	case "from":
		return v.from()
	case "from_digits":
		return strings.TrimPrefix(v.from(), "+")
	case "text":
		return v.s.Text
	case "text_hex":
		return hex.EncodeToString(sms.AppendUCS2(nil, v.s.Text))
	case "alphabet":
		return v.cfg.alphabet[sms.Count(v.s.Text, sms.Reference8).Alphabet]
	case "key":
		return v.s.Key
	case "id":
		return v.s.ID
	case "attempt":
		return strconv.Itoa(v.s.Attempt)
	case "callback":
		return v.cfg.Callback
	case "callback_url":
		return v.callbackURL()
	case secretName:
		return v.cfg.secrets[p.arg]
	case callbackSecretName:
		return v.cfg.verify.first()
	}
	return v.ofTime(p.name)
}

func (v *values) from() string {
	if v.s.From == "" {
		return v.cfg.From
	}
	return v.s.From
}

// ofTime is a value derived from the validity: at least one second or minute, at most the longest
// validity of the gateway.
func (v *values) ofTime(name string) string {
	ends := v.s.Ends()
	if ends.IsZero() {
		return ""
	}
	left := max(min(ends.Sub(v.now), v.cfg.LongestValidity), time.Second)
	switch name {
	case "validity_seconds":
		return strconv.Itoa(int(math.Ceil(left.Seconds())))
	case "validity_minutes":
		return strconv.Itoa(int(math.Ceil(left.Minutes())))
	case "expires":
		return v.now.Add(left).UTC().Format(time.RFC3339)
	}
	return ""
}

// callbackURL is the public URL with the fields by which a receipt is verified and matched, and
// with the placeholders that the gateway replaces.
func (v *values) callbackURL() string {
	if v.cfg.Callback == "" {
		return ""
	}
	query := v.cfg.callback.query.encode(v.get)
	return v.cfg.Callback + "?" + query + v.cfg.callback.raw
}
