package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
)

// Meaning is the meaning of a refusing answer for its submission. Adapters keep tables of them by
// the vendor's codes. The zero Meaning is Unknown.
type Meaning struct {
	Outcome provider.Outcome
	// Why is the adapter's own wording: the vendor's text may contain the number or the message.
	Why string
	// Blame is what a refusal is about, if Outcome is Refused.
	Blame Blame
}

// Unknown is an answer that leaves the outcome uncertain.
func Unknown(why string) Meaning { return Meaning{Outcome: provider.Unknown, Why: why} }

// Rejected means that no provider could send the message.
func Rejected(why string) Meaning { return Meaning{Outcome: provider.Rejected, Why: why} }

// Throttled means that the message was not taken, but would be later.
func Throttled(why string) Meaning { return Meaning{Outcome: provider.Throttled, Why: why} }

// Refused means that the message was certainly not taken, and no other would be (OnChannel).
func Refused(why string) Meaning { return refused(OnChannel, why) }

// BadSender means that the message was certainly not taken because of its sender (OnSender).
func BadSender(why string) Meaning { return refused(OnSender, why) }

// Unfit means that this one message was certainly not taken (OnMessage).
func Unfit(why string) Meaning { return refused(OnMessage, why) }

func refused(b Blame, why string) Meaning {
	return Meaning{Outcome: provider.Refused, Why: why, Blame: b}
}

// Result is the result of the submission for a meaning. code is the vendor's and may be empty;
// Result.Code is "<status>/<code>". Throttled uses the answer's Retry-After.
func (a *Answer) Result(v Meaning, code string) provider.Result {
	r := provider.Result{
		Outcome: v.Outcome, Unfit: a.unfit(v), Code: a.Code(code), Err: errors.New(v.Why),
	}
	if v.Outcome == provider.Throttled {
		r.RetryAfter = RetryAfter(a.Header, a.At)
	}
	return r
}

// MaybeFromProxy reports whether a proxy or load balancer may answer with this status after it
// passed the request on: 408 and 421 (RFC 9110 sections 15.5.9 and 15.5.20), 502, 503 and 504.
// Envoy answers 503 if its connection to the API breaks. The outcome is then unknown, even if the
// body holds a code of the API.
func MaybeFromProxy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// ByStatus is the result of a status regardless of the body: Refused for failed authentication or
// permission, Throttled for too many requests; false for others. Adapters use it if the body holds
// no known code.
func (a *Answer) ByStatus(code string) (provider.Result, bool) {
	switch a.Status {
	case http.StatusUnauthorized:
		return a.Result(Refused("the API refuses the credentials"), code), true
	case http.StatusForbidden:
		return a.Result(Refused("the account may not do this"), code), true
	case http.StatusTooManyRequests:
		return a.Result(Throttled("the API asks to slow down"), code), true
	}
	return provider.Result{}, false
}

// Unreadable is the result of an answer that cannot be read or leaves the outcome uncertain:
// Unknown.
func (a *Answer) Unreadable(code string) provider.Result {
	return a.Result(Unknown("the answer does not say what became of the message"), code)
}

// Blame is what a refusal is about. Adapters state it per code; Answer.Result alone decides the
// consequences for the channel.
type Blame uint8

const (
	// OnChannel is a refusal that any message would get: credentials, credit, limits of the
	// account. A refusal without a reason is one, too.
	OnChannel Blame = iota
	// OnSender is a refusal of the sender, whatever the recipient: a number that does not belong to
	// the account, or no longer.
	OnSender
	// OnMessage is a refusal of one message: of its text, its destination, or a sender that is
	// refused for this destination only.
	OnMessage
)

var blameNames = [...]string{
	OnChannel: "the channel", OnSender: "the sender", OnMessage: "the message",
}

// String says it in words, for tests.
func (b Blame) String() string { return blameNames[b] }

// unfit reports whether a meaning makes its message provider.Result.Unfit, so that it does not
// count against the channel. A refusal of the sender counts only if the message has its own sender.
// The channel's own sender would be refused with every message, and a channel that refuses
// everything at once would seem the least busy one.
func (a *Answer) unfit(v Meaning) bool {
	return v.Outcome == provider.Refused &&
		(v.Blame == OnMessage || v.Blame == OnSender && a.OwnSender)
}

// Code is the bounded code of an answer: its status, and the vendor's code if it has one.
func (a *Answer) Code(code string) string {
	status := strconv.Itoa(a.Status)
	if code = SafeCode(code); code != "" {
		return status + "/" + code
	}
	return status
}

// maxCode bounds a vendor's code, in bytes.
const maxCode = 40

// maxDigits is fewer than any phone number has.
const maxDigits = 6

// Showable reports whether a vendor's code can be shown: short, of letters, digits and "-_.", and
// with fewer digits in all than a phone number has.
func Showable(code string) bool {
	digits := 0
	for _, c := range []byte(code) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return code != "" && len(code) <= maxCode && digits <= maxDigits
}

// SafeCode returns a code that can be shown, "other" for any other, and an empty one unchanged.
func SafeCode(code string) string {
	if code == "" || Showable(code) {
		return code
	}
	return "other"
}

// RetryAfter reads the Retry-After header (RFC 9110 section 10.2.3), in seconds or as a date; zero
// if it is missing, unreadable or past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if seconds > 0 && seconds < 1e6 {
			return time.Duration(seconds * float64(time.Second))
		}
		return 0
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// PlainID reports whether a text can be a provider's id of a message: not too long, printable and
// without spaces.
func PlainID(text string) bool {
	return text != "" && len(text) <= provider.MaxReference &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
