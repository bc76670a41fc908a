package twilio

import (
	"encoding/json"
	"net/http"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// created is what a new Message looks like, as far as it matters here.
type created struct {
	SID string `json:"sid"`
}

// fault is the body of every answer that is no success.
type fault struct {
	Code int `json:"code"`
}

// Classify reads the answer to a submission. A message that has a SID was taken, whatever its status is by now:
// how it ends is told by its receipts.
func (*api) Classify(a *web.Answer) provider.Result {
	if a.Status == http.StatusCreated || a.Status == http.StatusOK {
		var m created
		if err := json.Unmarshal(a.Body, &m); err != nil || m.SID == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.SID}
	}
	var f fault
	err := json.Unmarshal(a.Body, &f)
	if v, known := meanings[f.Code]; err == nil && known && certain(a) {
		return a.Result(v, strconv.Itoa(f.Code))
	}
	return classifyRest(a, f.Code)
}

// certain reports whether an answer with a code says that no message was created, as the 4xx of Twilio do, and no server
// before it may have said so. A 5xx says nothing.
func certain(a *web.Answer) bool { return a.Status/100 == 4 && !web.MaybeFromProxy(a.Status) }

// classifyRest reads an answer whose code is not in the table, or that has none.
func classifyRest(a *web.Answer, n int) provider.Result {
	code := ""
	if n != 0 {
		code = strconv.Itoa(n)
	}
	if r, ok := a.ByStatus(code); ok {
		return r
	}
	if n != 0 && certain(a) {
		return a.Result(web.Refused("Twilio did not create the message"), code)
	}
	return a.Unreadable(code)
}
