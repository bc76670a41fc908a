package vonagetest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"dispatcher/provider/providertest"
	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// smsShape is the SMS API.
type smsShape struct{ cfg Config }

var (
	_ webtest.Protocol     = smsShape{}
	_ webtest.PartProtocol = smsShape{}
)

// fields are the API's parameters that the dispatcher may use.
var fields = []string{
	"api_key", "api_secret", "from", "to", "text", "type", "status-report-req", "callback",
	"client-ref", "ttl",
}

// Read reads a submission.
func (ss smsShape) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/sms/json" {
		return webtest.Submit{}, fmt.Errorf("%s %s is not an address of the API", r.Method, r.URL.Path)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return webtest.Submit{}, errors.New("not sent as a form")
	}
	for name := range form {
		if !slices.Contains(fields, name) || len(form[name]) != 1 {
			return webtest.Submit{}, fmt.Errorf("field %s", name)
		}
	}
	if form.Get("api_key") != ss.cfg.APIKey || form.Get("api_secret") != ss.cfg.APISecret {
		return webtest.Submit{}, errors.New("4: credentials")
	}
	if err := check(form); err != nil {
		return webtest.Submit{}, err
	}
	s := webtest.Submit{
		To: "+" + form.Get("to"), From: form.Get("from"), Text: form.Get("text"),
		Key:   form.Get("client-ref"),
		Parts: sms.Count(form.Get("text"), sms.Reference8).Segments,
	}
	if form.Get("status-report-req") == "true" {
		s.Callback = form.Get("callback")
	}
	return s, nil
}

// maxClientRef is how many characters a reference has at most.
const maxClientRef = 40

func check(form url.Values) error {
	ttl, err := strconv.Atoi(form.Get("ttl"))
	switch {
	case form.Get("text") == "":
		return errors.New("2: text")
	case !number.MatchString(form.Get("to")):
		return errors.New("3: to")
	case form.Get("from") == "" || form.Get("from")[0] == '+':
		return errors.New("2: from")
	case form.Has("ttl") && (err != nil || ttl < 20_000 || ttl > 604_800_000):
		return errors.New("3: ttl")
	case len(form.Get("client-ref")) > maxClientRef:
		return errors.New("3: client-ref")
	case form.Get("type") == "text" &&
		sms.Count(form.Get("text"), sms.Reference8).Alphabet != sms.GSM7:
		return errors.New("3: type text would lose characters")
	case form.Get("type") != "text" && form.Get("type") != "unicode":
		return errors.New("3: type")
	case form.Has("callback") && !isAddress(form.Get("callback")):
		return errors.New("23: callback")
	}
	return nil
}

// Write answers a submission, always with 200. A text of several parts gets an entry for each; the
// first has the carrier's reference, the others that reference with a number.
func (smsShape) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	switch v.Reply {
	case providertest.Reject:
		writeStatus(w, "33", "Number deactivated: "+bare(s.To))
	case providertest.Refuse:
		writeStatus(w, "9", "Quota Exceeded - rejected")
	case providertest.Throttle:
		text := "Throughput Rate Exceeded"
		if v.RetryAfter > 0 {
			text = fmt.Sprintf("Throughput Rate Exceeded - please wait [ %d ] and retry",
				v.RetryAfter.Milliseconds())
		}
		writeStatus(w, "1", text)
	case providertest.Accept, providertest.Lose, providertest.Cut:
		var list []map[string]string
		for i := range s.Parts {
			list = append(list, map[string]string{
				"to": bare(s.To), "message-id": PartReference(s.Reference, i), "status": "0",
				"remaining-balance": "3.14159265",
				"message-price":     "0.03330000", "network": "23415", "client-ref": s.Key,
			})
		}
		webtest.WriteJSON(w, http.StatusOK,
			map[string]any{"message-count": strconv.Itoa(s.Parts), "messages": list})
	}
}

// Part is a submit under the id of one of its parts.
func (smsShape) Part(s *webtest.Submit, i int) webtest.Submit {
	part := *s
	part.Reference = PartReference(s.Reference, i)
	return part
}

// PartReference is the id of a part, counted from zero, of a message that the SMS API accepted
// under a reference.
func PartReference(reference string, part int) string {
	if part == 0 {
		return reference
	}
	return reference + "-" + strconv.Itoa(part+1)
}

func writeStatus(w http.ResponseWriter, status, text string) {
	webtest.WriteJSON(w, http.StatusOK, map[string]any{
		"message-count": "1", "messages": []map[string]string{
			{"status": status, "error-text": text},
		},
	})
}
