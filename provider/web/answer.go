package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
)

// Meaning is what an answer that is no acceptance means for its submission, before it is known
// which submission that was: adapters keep tables of them, by the vendor's codes. The zero Meaning
// is Unknown.
type Meaning struct {
	Outcome provider.Outcome
	// Why says it in words of the adapter: the vendor's text may repeat the number or the message.
	Why string
	// Blame is what it is about, where the Outcome is Refused.
	Blame Blame
}

// Unknown is the verdict of an answer that says nothing certain.
func Unknown(why string) Meaning { return Meaning{Outcome: provider.Unknown, Why: why} }

// Rejected is the verdict that no provider could send the message.
func Rejected(why string) Meaning { return Meaning{Outcome: provider.Rejected, Why: why} }

// Throttled is the verdict that the message was not taken, and would be later.
func Throttled(why string) Meaning { return Meaning{Outcome: provider.Throttled, Why: why} }

// Refused is the verdict that the message was certainly not taken, as no other would be: OnChannel.
func Refused(why string) Meaning { return refused(OnChannel, why) }

// BadSender is the verdict that the message was certainly not taken for who sends it: OnSender.
func BadSender(why string) Meaning { return refused(OnSender, why) }

// Unfit is the verdict that this one message was certainly not taken: OnMessage.
func Unfit(why string) Meaning { return refused(OnMessage, why) }

func refused(b Blame, why string) Meaning {
	return Meaning{Outcome: provider.Refused, Why: why, Blame: b}
}

// Result is what a verdict makes of the submission that this is the answer to. code is the vendor's
// own and may be empty; the Code of the result is "<status>/<code>". Throttled takes over the
// answer's Retry-After.
func (a *Answer) Result(v Meaning, code string) provider.Result {
	r := provider.Result{
		Outcome: v.Outcome, Unfit: a.unfit(v), Code: a.Code(code), Err: errors.New(v.Why),
	}
	if v.Outcome == provider.Throttled {
		r.RetryAfter = RetryAfter(a.Header, a.At)
	}
	return r
}

// MaybeFromProxy reports whether a server that stands before an API, a proxy or a load balancer,
// may say a status by itself after it has passed the request on: 408 and 421 (RFC 9110 sections
// 15.5.9 and 15.5.20), 502, 503 and 504. Envoy, for one, answers 503 when the connection breaks
// behind it. What became of the message is not known then, unless words of the API's own stand
// beside the status.
func MaybeFromProxy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// ByStatus is the result that a status stands for whatever the body says: Refused for failed
// authentication and missing permission, Throttled for too many requests; false for others. Each
// adapter asks for it when the body holds no code that it knows.
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

// Unreadable is the result of an answer that cannot be read, or says nothing certain: Unknown.
func (a *Answer) Unreadable(code string) provider.Result {
	return a.Result(Unknown("the answer does not say what became of the message"), code)
}

// Blame says what a refusal is about, as far as the vendor's answer tells. Adapters know it of each
// code; what follows from it for the channel is decided by Answer.Result and nowhere else.
type Blame uint8

const (
	// OnChannel is a refusal that any message would get: credentials, credit, limits of the
	// account. So is one that does not tell.
	OnChannel Blame = iota
	// OnSender is a refusal of who sends, wherever the message goes: a number that is not the
	// account's, or no longer.
	OnSender
	// OnMessage is a refusal of one message: of its text, of where it goes, or of a sender there
	// and not elsewhere.
	OnMessage
)

var blameNames = [...]string{
	OnChannel: "the channel", OnSender: "the sender", OnMessage: "the message",
}

// String says it in words, for tests.
func (b Blame) String() string { return blameNames[b] }

// unfit reports whether a verdict makes its message provider.Result.Unfit, which leaves the channel
// to others. A refusal of the sender does only where the message brought its own: a sender that the
// channel gives to all its messages is refused with all of them, and a channel that refuses
// everything at once would look like the least busy one.
func (a *Answer) unfit(v Meaning) bool {
	return v.Outcome == provider.Refused &&
		(v.Blame == OnMessage || v.Blame == OnSender && a.OwnSender)
}

// Code is the bounded word for an answer: its status, and the vendor's code when it has one.
func (a *Answer) Code(code string) string {
	status := strconv.Itoa(a.Status)
	if code = SafeCode(code); code != "" {
		return status + "/" + code
	}
	return status
}

// maxCode bounds a vendor's code, in bytes.
const maxCode = 40

// SafeCode returns a vendor's code if it can be shown: short, made of letters, digits and "-_.".
// Anything else, and a row of digits as long as a phone number, is "other"; an empty one stays
// empty.
func SafeCode(code string) string {
	if len(code) > maxCode {
		return "other"
	}
	digits := 0
	for _, c := range []byte(code) {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > maxDigits {
				return "other"
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
			digits = 0
		default:
			return "other"
		}
	}
	return code
}

// maxDigits is fewer than any phone number has.
const maxDigits = 6

// RetryAfter reads the header of that name (RFC 9110 section 10.2.3), in seconds or as a date; zero
// when there is none that can be read, or when it has passed.
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
