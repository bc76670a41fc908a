package web

import (
	"errors"
	"net/http"

	"dispatcher/provider"
)

// Meaning is what an answer that is no acceptance means for its submission, before it is known which submission that was: adapters
// keep tables of them, by the vendor's codes. The zero Meaning is Unknown.
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

// Result is what a verdict makes of the submission that this is the answer to. code is the vendor's own and may be empty; the Code of
// the result is "<status>/<code>". Throttled takes over the answer's Retry-After.
func (a *Answer) Result(v Meaning, code string) provider.Result {
	r := provider.Result{Outcome: v.Outcome, Unfit: a.unfit(v), Code: a.Code(code), Err: errors.New(v.Why)}
	if v.Outcome == provider.Throttled {
		r.RetryAfter = RetryAfter(a.Header, a.At)
	}
	return r
}

// MaybeFromProxy reports whether a server that stands before an API, a proxy or a load balancer, may say a status by itself after it
// has passed the request on: 408 and 421 (RFC 9110 sections 15.5.9 and 15.5.20), 502, 503 and 504. Envoy, for
// one, answers 503 when the connection breaks behind it. What became of the message is not known then, unless words of the
// API's own stand beside the status.
func MaybeFromProxy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// ByStatus is the result that a status stands for whatever the body says: Refused for failed
// authentication and missing permission, Throttled for too many requests; false for others. Each adapter asks for it when
// the body holds no code that it knows.
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
