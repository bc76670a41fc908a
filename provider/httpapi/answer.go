package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answer describes how an answer is read.
type answer struct {
	id         *place // nil: the gateway gives none
	code       *place
	retryAfter *place // seconds; in addition to the header
	rules      []rule // the first that fits decides
}

// rule says what an answer means.
type rule struct {
	low, high int      // status codes
	codes     []string // nil: any, or none at all
	outcome   provider.Outcome
}

// meanings are the errors of outcomes other than Accepted, and noID that of an acceptance without
// an id. The gateway's own texts may contain the number.
var (
	meanings = map[provider.Outcome]web.Meaning{
		provider.Unknown:   web.Unknown("the description does not say what this answer means"),
		provider.Rejected:  web.Rejected("the gateway finds fault with the message"),
		provider.Refused:   web.Refused("the gateway does not take messages from this channel now"),
		provider.Throttled: web.Throttled("the gateway asks to slow down"),
	}
	noID = web.Unknown("the gateway says yes without an id")
)

// Classify reads an answer by the first rule that matches. A rule for 4xx or 5xx does not cover
// statuses that a proxy may answer: 429 is Throttled (RFC 6585 section 4), those of
// web.MaybeFromProxy are Unknown, unless a rule names them. If no rule matches, the answer is
// Unknown.
func (a api) Classify(response *web.Answer) provider.Result {
	d := &document{header: response.Header, body: response.Body}
	_ = d.parseJSON() // a body that is not JSON has no value at any pointer
	code, _ := a.cfg.answer.code.find(d)
	outcome := a.cfg.answer.outcome(response.Status, code)
	if !web.Showable(code) {
		code = ""
	}
	if outcome == provider.Accepted {
		return a.accepted(d, response, code)
	}
	r := response.Result(meanings[outcome], code)
	if outcome == provider.Throttled {
		r.RetryAfter = a.cfg.answer.wait(d, response)
	}
	return r
}

func (a api) accepted(d *document, response *web.Answer, code string) provider.Result {
	id, found := a.cfg.answer.id.find(d)
	if a.cfg.answer.id != nil && (!found || !web.PlainID(id)) {
		return response.Result(noID, code)
	}
	return provider.Result{Outcome: provider.Accepted, Reference: id}
}

func (a *answer) outcome(status int, code string) provider.Outcome {
	for _, rule := range a.rules {
		if rule.low != rule.high && maybeFromProxy(status) {
			continue
		}
		if status >= rule.low && status <= rule.high &&
			(rule.codes == nil || slices.Contains(rule.codes, code)) {
			return rule.outcome
		}
	}
	if status == http.StatusTooManyRequests {
		return provider.Throttled
	}
	return provider.Unknown
}

// maybeFromProxy reports whether the status may come from a proxy or a server in between.
func maybeFromProxy(status int) bool {
	return status == http.StatusTooManyRequests || web.MaybeFromProxy(status)
}

// wait is the pause that the gateway asks for.
func (a *answer) wait(d *document, response *web.Answer) time.Duration {
	const longest = 1e6
	if text, ok := a.retryAfter.find(d); ok {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 &&
			seconds < longest {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	return web.RetryAfter(response.Header, response.At)
}
