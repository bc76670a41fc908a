package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// bareChannel is an adapter without a connection.
type bareChannel struct {
	*web.Channel
	callback string
}

func (bareChannel) Capabilities() provider.Capabilities { return provider.Capabilities{} }

func (bareChannel) ReadCallback(*provider.Callback) (provider.CallbackContent, error) {
	return provider.CallbackContent{}, nil
}

func TestAChannelIsOpenedOnlyWithSettingsWithoutFault(t *testing.T) {
	t.Parallel()
	fault := errors.New("api_key_file: is missing")
	for _, want := range []error{nil, fault} {
		parse := func(_ map[string]any, o web.Environment) (string, error) {
			return o.Callback, want
		}
		made := func(callback string) bareChannel {
			return bareChannel{
				web.New(webtest.LocalConfig(t, "http://127.0.0.1:1"), plainAPI{"GET"}), callback,
			}
		}
		c, err := web.Open(nil, web.Environment{Callback: "https://sms.example.org"}, parse, made)
		if want != nil {
			if c != nil || !errors.Is(err, want) {
				t.Errorf("channel %v, error %v", c, err)
			}
			continue
		}
		if err != nil || c.(bareChannel).callback != "https://sms.example.org" {
			t.Errorf("channel %v, error %v", c, err)
		}
	}
}

// TestAHostIsWrittenAsDNSHasIt: the connection uses the name as written.
func TestAHostIsWrittenAsDNSHasIt(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://api.example.com/v1": true, "http://[::1]:8080": true,
		"https://xn--bcher-kva.example": true,
		"https://b\u00fccher.example":   false,
	} {
		r := settings.New(map[string]any{"base_url": address}, nil)
		web.ParseConfig(r, "")
		if err := r.Err(); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// plainAPI is the smallest API of an adapter: JSON in, a status and an id out.
type plainAPI struct{ method string }

type plainSubmit struct{ To, Text string }

func (p plainAPI) Compose(s *provider.Submission) (*web.Request, error) {
	if p.method == http.MethodGet {
		query := url.Values{"to": {s.To}, "text": {s.Text}}
		return &web.Request{Method: p.method, URL: "/send?" + query.Encode()}, nil
	}
	body, err := json.Marshal(plainSubmit{s.To, s.Text})
	return &web.Request{
		Method: p.method, URL: "/send", Body: body, Header: http.Header{"Idempotency-Key": {s.ID}},
	}, err
}

func (plainAPI) Classify(a *web.Answer) provider.Result {
	r := provider.Result{Code: strconv.Itoa(a.Status), Err: errors.New(http.StatusText(a.Status))}
	switch a.Status {
	case http.StatusOK:
		return provider.Result{
			Outcome: provider.Accepted, Reference: strings.TrimRight(string(a.Body), "\x00"),
		}
	case http.StatusBadRequest:
		r.Outcome = provider.Rejected
	case http.StatusForbidden:
		r.Outcome = provider.Refused
	case http.StatusTooManyRequests:
		r.Outcome, r.RetryAfter = provider.Throttled, web.RetryAfter(a.Header, a.At)
	}
	return r
}

// plainProtocol is the server's side of plainAPI.
type plainProtocol struct{}

func (plainProtocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if r.Method == http.MethodGet {
		return webtest.Submit{To: r.URL.Query().Get("to"), Text: r.URL.Query().Get("text")}, nil
	}
	var s plainSubmit
	err := json.Unmarshal(body, &s)
	return webtest.Submit{To: s.To, Text: s.Text}, err
}

func (plainProtocol) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	status := map[providertest.Reply]int{
		providertest.Reject: http.StatusBadRequest, providertest.Refuse: http.StatusForbidden,
		providertest.Throttle: http.StatusTooManyRequests,
	}[v.Reply]
	if status != 0 {
		if v.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(v.RetryAfter.Seconds())))
		}
		w.WriteHeader(status)
		return
	}
	_, _ = w.Write([]byte(s.Reference))
}

func (plainProtocol) Receipt(*webtest.Submit, webtest.Receipt) (*http.Request, error) {
	return nil, nil
} //nolint:nilnil // It has none.

func (plainProtocol) Inbound(string, provider.Inbound) (*http.Request, error) { return nil, nil } //nolint:nilnil // It has none.

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			webtest.CheckVendor(t, webtest.Vendor{
				Protocol: func() webtest.Protocol { return plainProtocol{} },
				Open: func(_ testing.TB, reach web.Config) provider.Channel {
					return web.New(reach, plainAPI{method})
				},
			})
		})
	}
}
