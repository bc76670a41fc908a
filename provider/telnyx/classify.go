package telnyx

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// accepted is the answer to a message that was taken, as far as it matters here.
type accepted struct {
	Data struct {
		ID string `json:"id"`
	} `json:"data"`
}

// refusal is the body of every answer that is no success.
type refusal struct {
	Errors []fault `json:"errors"`
}

// fault is one error. Its code is a number written as a text, in some answers a number.
type fault struct {
	Code   json.RawMessage `json:"code"`
	Source struct {
		Pointer string `json:"pointer"`
	} `json:"source"`
}

func (f *fault) code() string { return strings.Trim(string(f.Code), `"`) }

// code is that of the first error, which is the one that counts; empty when there is none.
func (r *refusal) code() string {
	if len(r.Errors) == 0 {
		return ""
	}
	return r.Errors[0].code()
}

// unexpectedError and requestTimeout are codes by which Telnyx says, under whatever status, that something went wrong on
// the way, and not what became of the message.
const (
	unexpectedError = "10007"
	requestTimeout  = "10008"
)

func (r *refusal) uncertain() bool {
	return slices.ContainsFunc(r.Errors, func(f fault) bool { return f.code() == unexpectedError || f.code() == requestTimeout })
}

// Classify reads the answer to a submission.
func (*api) Classify(a *web.Answer) provider.Result {
	if a.Status == http.StatusOK || a.Status == http.StatusCreated || a.Status == http.StatusAccepted {
		var m accepted
		if err := json.Unmarshal(a.Body, &m); err != nil || m.Data.ID == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.Data.ID}
	}
	var r refusal
	if err := json.Unmarshal(a.Body, &r); err != nil {
		r = refusal{}
	}
	return r.classify(a)
}

// classify reads an answer that is no success. Requests are checked before anything is queued: a 4xx with errors says that
// nothing was, unless a server before the API may have said it.
func (r *refusal) classify(a *web.Answer) provider.Result {
	code := r.code()
	if r.uncertain() {
		return a.Unreadable(code)
	}
	certain := a.Status/100 == 4 && !web.MaybeFromProxy(a.Status)
	if v, known := meanings[code]; known && certain {
		if slices.Contains(ofEither, code) && !strings.HasPrefix(r.Errors[0].Source.Pointer, "/to") {
			v = web.BadSender("the sender, or perhaps the recipient, is no valid or active number")
		}
		return patient(a, a.Result(v, code))
	}
	if plain, ok := a.ByStatus(code); ok {
		return patient(a, plain)
	}
	if code != "" && certain {
		return a.Result(web.Refused("Telnyx did not take the message"), code)
	}
	return a.Unreadable(code)
}

// patient adds how long to wait from x-ratelimit-reset, in seconds, when the answer has no Retry-After.
func patient(a *web.Answer, r provider.Result) provider.Result {
	if r.Outcome != provider.Throttled || r.RetryAfter > 0 {
		return r
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(a.Header.Get("X-Ratelimit-Reset")))
	if err == nil && seconds > 0 && seconds <= longestReset {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	return r
}

// longestReset is above what a rate limit can mean: a larger number is a time of another kind.
const longestReset = 24 * 60 * 60
