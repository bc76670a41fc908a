package plivo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

const (
	// longestGSM and longestUCS2 are how many septets and 16-bit units a text may have (error 110).
	longestGSM  = 1600
	longestUCS2 = 737
	// shortestValidity and longestValidity bound message_expiry.
	shortestValidity = 5 * time.Second
	longestValidity  = 10_799 * time.Second
)

// outbound is the body of POST /Message/.
type outbound struct {
	Src       string `json:"src,omitempty"`
	Powerpack string `json:"powerpack_uuid,omitempty"`
	Dst       string `json:"dst"`
	Text      string `json:"text"`
	Type      string `json:"type"`
	URL       string `json:"url,omitempty"`
	Method    string `json:"method,omitempty"`
	Expiry    int    `json:"message_expiry,omitempty"`
	Log       string `json:"log,omitempty"`
}

// api writes requests and reads answers. It is pure except for the clock that now reads.
type api struct {
	cfg    Config
	path   string
	header http.Header
	now    func() time.Time
}

func newAPI(cfg Config, now func() time.Time) *api {
	token := ""
	if len(cfg.AuthTokens) > 0 {
		token = cfg.AuthTokens[0]
	}
	credentials := base64.StdEncoding.EncodeToString([]byte(cfg.AuthID + ":" + token))
	return &api{
		cfg: cfg, now: now, path: "/Account/" + cfg.AuthID + "/Message/",
		header: http.Header{
			"Authorization": {"Basic " + credentials}, "Content-Type": {"application/json"},
			"Accept": {"application/json"},
		},
	}
}

// Compose writes a submission. Plivo chooses the alphabet that the text needs.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	if err := fits(s.Text); err != nil {
		return nil, err
	}
	m := outbound{Dst: strings.TrimPrefix(s.To, "+"), Text: s.Text, Type: "sms", Log: a.cfg.Log}
	switch {
	case s.From != "":
		m.Src = strings.TrimPrefix(s.From, "+")
	case a.cfg.Powerpack != "":
		m.Powerpack = a.cfg.Powerpack
	case a.cfg.From != "":
		m.Src = strings.TrimPrefix(a.cfg.From, "+")
	default:
		return nil, errors.New("neither the message nor the channel names a sender")
	}
	if ends := s.Ends(); !ends.IsZero() {
		m.Expiry = int(min(max(ends.Sub(a.now()), shortestValidity), longestValidity) / time.Second)
	}
	if a.cfg.Callback != "" {
		m.URL, m.Method = a.cfg.proofs().Address(a.cfg.Callback, s.Key), http.MethodPost
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	return &web.Request{Method: http.MethodPost, URL: a.path, Header: a.header, Body: body}, nil
}

// fits returns an error if Plivo does not accept a text.
func fits(text string) error {
	size := sms.Count(text, sms.Reference8)
	switch {
	case text == "":
		return web.Unsendable("there is no text")
	case size.Alphabet == sms.UCS2 && size.Units > longestUCS2:
		return errors.New("the text has more than 737 characters of UCS-2")
	case size.Alphabet != sms.UCS2 && size.Units > longestGSM:
		return errors.New("the text has more than 1600 characters")
	}
	return nil
}

// V3 signs the names and values of a form without separators, followed by a dot and the nonce.
// Somebody who has captured a callback could cut the same text into other fields, or into another
// nonce, under the same signature. A nonce has no dot, so it begins after the last dot. The fields
// are found in the signed text itself, and a form that differs from them is refused.

var (
	// noncePattern has no dot.
	noncePattern = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	// uuidPattern matches the id of a message.
	uuidPattern = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

	parents  = regexp.MustCompile(`ParentMessageUUID[0-9A-Fa-f-]{36}`)
	messages = regexp.MustCompile(`MessageUUID([0-9A-Fa-f-]{36})`)
	statuses = regexp.MustCompile(`Status([a-z_-]+)`)
	failures = regexp.MustCompile(`ErrorCode([0-9]+)`)

	// afterFrom and afterTo are names that follow From and To.
	afterFrom = []string{"MCC", "MNC", "Media", "MessageIntent", "MessageTime", "MessageUUID"}
	afterTo   = []string{"TotalAmount", "TotalRate", "Type", "Units"}
)

// agrees reports whether a form has the fields of its signed text, cut in the one accepted way. All
// values that are used are found in the text, so names and values of other fields do not matter. A
// message of a subscriber has, in the order of the names, From, MessageUUID, Text, To and its cost.
// Only Text comes from outside. It begins at the first "Text" after the message's UUID and ends at
// the last "To", because no other field in between has these names. A status callback has no Text
// and no other value from outside. The name of its sender, which precedes the UUID, may look like a
// field, TextLocal for example: the search for the other fields leaves it out.
func agrees(form url.Values, signed string) bool {
	for _, values := range form {
		if len(values) != 1 {
			return false
		}
	}
	uuid := messages.FindStringIndex(signed) // the first one: ParentMessageUUID follows it
	if uuid == nil {
		return false
	}
	before, from, hasFrom := strings.Cut(signed[:uuid[0]], "From")
	behind, text, isInbound := strings.Cut(signed[uuid[1]:], "Text")
	if isInbound != form.Has("Text") {
		return false
	}
	if isInbound {
		end := lastTo(text)
		if end < 0 || !hasFrom || form.Get("Text") != text[:end] ||
			form.Get("From") != web.LeadingValue(from, afterFrom) ||
			form.Get("To") != web.LeadingValue(text[end+len("To"):], afterTo) {
			return false
		}
	}
	fields := before + signed[uuid[0]:uuid[1]] + parents.ReplaceAllString(behind, "")
	for name, words := range map[string]*regexp.Regexp{
		"MessageUUID": messages, "Status": statuses, "ErrorCode": failures,
	} {
		if value, ok := web.OnlyValue(words, fields); !ok || value != form.Get(name) {
			return false
		}
	}
	return true
}

// lastTo is where the last To of a text begins, except those that begin the names of a message's
// cost; negative without one.
func lastTo(text string) int {
	for end := len(text); ; {
		end = strings.LastIndex(text[:end], "To")
		if end < 0 || !strings.HasPrefix(text[end:], "Total") {
			return end
		}
	}
}
