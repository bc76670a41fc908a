package plivo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
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

// api writes requests and reads answers. It is pure but for the clock that now reads.
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
	return &api{cfg: cfg, now: now, path: "/Account/" + cfg.AuthID + "/Message/", header: http.Header{
		"Authorization": {"Basic " + credentials}, "Content-Type": {"application/json"}, "Accept": {"application/json"},
	}}
}

// Compose sends a message. Plivo takes the alphabet that the text needs.
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
		m.URL, m.Method = web.WithKey(a.cfg.Callback, s.Key), http.MethodPost
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	return &web.Request{Method: http.MethodPost, URL: a.path, Header: a.header, Body: body}, nil
}

// fits reports what is wrong with a text.
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
