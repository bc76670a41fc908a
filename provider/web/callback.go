package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
)

// keyParameter is the query parameter of callbacks that carries Submission.Key.
const keyParameter = "key"

// WithKey adds a submission's key to a callback URL, for providers that return none of our values
// but call the URL that the submission named. An empty callback stays empty.
func WithKey(callback, key string) string {
	if callback == "" || key == "" {
		return callback
	}
	return withParameter(callback, keyParameter, key)
}

// withParameter sets a parameter of an address's query.
func withParameter(address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// CallbackKey returns the Submission.Key in a callback URL; empty if there is none, or if the value
// is not a key. It can be trusted only if the provider's signature covers the URL.
func CallbackKey(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return OwnKey(u.Query().Get(keyParameter))
}

// OwnKey returns the text if it has the form of a Submission.Key, otherwise "".
func OwnKey(text string) string {
	if len(text) != keyLength || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}

// keyLength is the length of provider.Submission.Key in hexadecimal digits.
const keyLength = 32

// proofParameter is the query parameter of callbacks that proves that we made the address.
const proofParameter = "proof"

// Proofs makes and checks callback URLs that nobody else can make, for vendors that do not sign
// what a callback says. Whoever sees such an address can report on its message and on no other.
type Proofs struct {
	// Label separates the proofs from other uses of the secrets.
	Label string
	// Secrets are the valid ones; the first makes proofs.
	Secrets []string
}

// Address is a callback URL with a submission's key and its proof. The key may be empty. Without a
// secret there is no proof.
func (p Proofs) Address(callback, key string) string {
	address := WithKey(callback, key)
	if len(p.Secrets) == 0 {
		return address
	}
	return withParameter(address, proofParameter, hex.EncodeToString(p.proof(p.Secrets[0], key)))
}

// Key returns the key in a callback URL, empty if it has none; false if the proof is missing or
// wrong.
func (p Proofs) Key(address string) (key string, ok bool) {
	_, rawQuery, _ := strings.Cut(address, "?")
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", false
	}
	given, err := hex.DecodeString(query.Get(proofParameter))
	if err != nil {
		return "", false
	}
	key = CallbackKey(address)
	return key, SignedByAny(p.Secrets, given, func(secret string) []byte {
		return p.proof(secret, key)
	})
}

func (p Proofs) proof(secret, key string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(p.Label + key))
	return mac.Sum(nil)
}

// proofPattern matches a proof.
var proofPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Tolerance is how far the time in a signed callback may be ahead of ours, and behind it for
// vendors that sign every attempt again: clock differences and delays in transit.
const Tolerance = 5 * time.Minute

// RetryTolerance is the allowed age for vendors that retry for that long and do not say whether
// they sign again: with a shorter one, callbacks delayed by an outage here could be refused. The
// ReplayID recognises a repeated callback for about an hour, and the database later ones.
func RetryTolerance(after time.Duration) time.Duration { return after + time.Hour }

// SignedByAny reports whether one of the currently valid secrets made a signature. It tries all of
// them, each in constant time, so that the time does not show which one it was.
func SignedByAny[S any](secrets []S, given []byte, sign func(secret S) []byte) bool {
	genuine := false
	for _, secret := range secrets {
		genuine = hmac.Equal(given, sign(secret)) || genuine
	}
	return genuine
}

// CheckStamp checks the time of a signed callback in seconds since 1970: ErrMalformed if it is not
// a number, otherwise like CheckAge.
func CheckStamp(stamp string, now time.Time, late time.Duration) error {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("its time is not a number: %w", provider.ErrMalformed)
	}
	return CheckAge(time.Unix(seconds, 0), now, late)
}

// CheckAge returns ErrStale for a time further in the past than late, or further in the future than
// Tolerance.
func CheckAge(at, now time.Time, late time.Duration) error {
	if age := now.Sub(at); age > late || age < -Tolerance {
		return provider.ErrStale
	}
	return nil
}

// Time reads a time of signed content, such as 2026-11-21T10:00:00.000Z; zero if it has none.
func Time(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

// Some vendors sign the concatenated names and values of a form. The same text can then be cut into
// other names and values. OnlyValue, LeadingValue and IsCallbackURL read single values from the
// text itself, so that a form that was cut differently is detected.

// OnlyValue returns the value that a pattern with one group finds in a text; empty if it finds
// none, and false if it finds several different ones.
func OnlyValue(pattern *regexp.Regexp, text string) (value string, ok bool) {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		if value != "" && found[1] != value {
			return "", false
		}
		value = found[1]
	}
	return value, true
}

// joinedNumber is an E.164 number or a short code at the beginning of a text.
var joinedNumber = regexp.MustCompile(`^\+?[0-9]{3,15}`)

// LeadingValue returns the value of a field at the start of a text. A number ends where the next
// name starts, because names start with a capital letter. Anything else ends at the first of the
// names that may follow.
func LeadingValue(text string, next []string) string {
	if at := joinedNumber.FindStringIndex(text); at != nil &&
		(at[1] == len(text) || text[at[1]] >= 'A' && text[at[1]] <= 'Z') {
		return text[:at[1]]
	}
	end := len(text)
	for _, name := range next {
		if at := strings.Index(text, name); at >= 0 {
			end = min(end, at)
		}
	}
	return text[:end]
}

// IsCallbackURL reports whether an address is our callback, with or without a key and a proof,
// which it does not check. The end of any other address could be something that was signed after
// the address. Without a configured callback, no query is allowed.
func IsCallbackURL(address, configured string) bool {
	if configured == "" {
		return !strings.Contains(address, "?")
	}
	given, err := url.Parse(address)
	if err != nil {
		return false
	}
	plain, err := url.Parse(configured)
	if err != nil || given.Path != plain.Path {
		return false
	}
	expected := WithKey(configured, CallbackKey(address))
	if proof := given.Query().Get(proofParameter); proofPattern.MatchString(proof) {
		expected = withParameter(expected, proofParameter, proof)
	}
	ours, err := url.Parse(expected)
	return err == nil && (given.RawQuery == plain.RawQuery || given.RawQuery == ours.RawQuery)
}

// SameSecret compares in a time that depends neither on the content nor on the length of given.
func SameSecret(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return hmac.Equal(a[:], b[:])
}

// longNumber is an international number without its plus; short codes have fewer digits.
var longNumber = regexp.MustCompile(`^[0-9]{7,15}$`)

// International adds the plus to a number that the vendor writes without one, also if a query
// turned it into a space. Short codes and names stay as they are.
func International(number string) string {
	number = strings.TrimSpace(number)
	if longNumber.MatchString(number) {
		return "+" + number
	}
	return number
}

// HexSHA256 is the SHA-256 of a content in hexadecimal digits, as several vendors sign it.
func HexSHA256(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
