package web

import (
	"errors"
	"net/http"
	"strconv"

	"dispatcher/provider"
)

// Verdict is the result that an answer stands for when it is no acceptance. code is the vendor's own and may be empty; the
// Code of the result is "<status>/<code>". why says in words of the adapter what the code means: the
// vendor's text may repeat the number or the message. Throttled takes over the answer's Retry-After.
func (a *Answer) Verdict(o provider.Outcome, code, why string) provider.Result {
	r := provider.Result{Outcome: o, Code: a.Code(code), Err: errors.New(why)}
	if o == provider.Throttled {
		r.RetryAfter = RetryAfter(a.Header, a.At)
	}
	return r
}

// Code is the bounded word for an answer: its status, and the vendor's code when it has one.
func (a *Answer) Code(code string) string {
	status := strconv.Itoa(a.Status)
	if code = Bounded(code); code != "" {
		return status + "/" + code
	}
	return status
}

// maxCode bounds a vendor's code, in bytes.
const maxCode = 40

// Bounded returns a vendor's code if it can be shown: short, made of letters, digits and "-_.". Anything
// else, and a row of digits as long as a phone number, is "other"; an empty one stays empty.
func Bounded(code string) string {
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

// FromBetween reports whether a server that stands before an API, a proxy or a load balancer, may say a status by itself after it
// has passed the request on: 408 and 421 (RFC 9110 sections 15.5.9 and 15.5.20), 502, 503 and 504. Envoy, for
// one, answers 503 when the connection breaks behind it. What became of the message is not known then, unless words of the
// API's own stand beside the status.
func FromBetween(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Plain is the verdict that a status stands for whatever the body says: Refused for failed
// authentication and missing permission, Throttled for too many requests; false for others. Each adapter asks for it when
// the body holds no code that it knows.
func (a *Answer) Plain(code string) (provider.Result, bool) {
	switch a.Status {
	case http.StatusUnauthorized:
		return a.Verdict(provider.Refused, code, "the API refuses the credentials"), true
	case http.StatusForbidden:
		return a.Verdict(provider.Refused, code, "the account may not do this"), true
	case http.StatusTooManyRequests:
		return a.Verdict(provider.Throttled, code, "the API asks to slow down"), true
	}
	return provider.Result{}, false
}

// Unreadable is the result of an answer that cannot be read, or says nothing certain: Unknown.
func (a *Answer) Unreadable(code string) provider.Result {
	return a.Verdict(provider.Unknown, code, "the answer does not say what became of the message")
}
