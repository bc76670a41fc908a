package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/httpapi/httpapitest"
	"dispatcher/provider/web/webtest"
)

// receiptCallback returns a gateway's callback with a receipt.
func receiptCallback(t testing.TB, name string, r webtest.Receipt) *provider.Callback {
	t.Helper()
	s := &webtest.Submit{
		To: "+447700900123", Key: key, Reference: "ref-1", Callback: callback,
	}
	if name == "kannel" {
		s.Callback += "?key=" + key + "&secret=" + secret + "&status=%d"
	}
	request, err := httpapitest.New(account(name)).Receipt(s, r)
	if err != nil {
		t.Fatal(err)
	}
	return webtest.MadeCallbackAt(t, request, time.Now())
}

func TestReceiptsAreReadAsDescribed(t *testing.T) {
	t.Parallel()
	for name, tests := range map[string]map[webtest.Receipt]provider.Receipt{
		"kannel": {
			{State: provider.Delivered}: {
				Reference: key, State: provider.Delivered, Code: "1",
			},
			{State: provider.Pending}: {
				Reference: key, State: provider.Pending, Code: "8",
			},
			{State: provider.Undelivered}: {
				Reference: key, State: provider.Undelivered, Code: "2",
			},
			{State: provider.Undelivered, Code: "16"}: {
				Reference: key, State: provider.Undelivered, Code: "16",
			},
			// unknown words, one of them too long to show
			{State: provider.Undelivered, Code: "999"}: {
				Reference: key, State: provider.Pending, Code: "999",
			},
			{State: provider.Undelivered, Code: strings.Repeat("X", 41)}: {
				Reference: key, State: provider.Pending, Code: "other",
			},
		},
		"clicksend": {
			{State: provider.Delivered}: {
				Reference: "ref-1", State: provider.Delivered, Code: "201",
			},
			{State: provider.Pending}: {
				Reference: "ref-1", State: provider.Pending, Code: "200",
			},
			{State: provider.Undelivered, Code: "400"}: {
				Reference: "ref-1", State: provider.Undelivered, Code: "301/400",
				Cause: provider.Absent,
			},
		},
	} {
		values := document(t, name, nil)
		values["receipts"].(map[string]any)["causes"] = map[string]any{"400": "absent"}
		c := open(t, values)
		for said, want := range tests {
			request := receiptCallback(t, name, said)
			want.Key = key
			webtest.CheckContent(t, c, request,
				provider.CallbackContent{Receipts: []provider.Receipt{want}})
		}
	}
}

func TestInboundMessagesAreReadAsDescribed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kannel", "clicksend"} {
		in := provider.Inbound{
			Reference: "in-1", From: "+447700900123", To: "447700", Text: "STOP & status=1",
		}
		request, err := httpapitest.New(account(name)).Inbound(callback, in)
		if err != nil {
			t.Fatal(err)
		}
		said := webtest.MadeCallbackAt(t, request, time.Now())
		webtest.CheckContent(t, open(t, document(t, name, nil)), said,
			provider.CallbackContent{Inbound: []provider.Inbound{in}})
	}
}

func TestCallersWithoutTheSecretAreForgers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kannel", "clicksend"} {
		request := receiptCallback(t, name, webtest.Receipt{State: provider.Delivered})
		values := document(t, name, nil)
		verify := values["verify"].(map[string]any)
		for _, test := range []struct {
			files  any
			forged bool
		}{{"old", true}, {[]any{"old", "secret"}, false}, {[]any{"secret", "old"}, false}} {
			verify["secret_files"] = test.files
			content, err := open(t, values).ReadCallback(request)
			if errors.Is(err, provider.ErrForged) != test.forged ||
				test.forged && content.Receipts != nil {
				t.Errorf("%s with %v: %v", name, test.files, err)
			}
		}
		request.URL = callback
		webtest.CheckForged(t, open(t, document(t, name, nil)), request)
	}
}

// batch is a gateway that posts several receipts as JSON and expects a specific answer.
const batch = `
base_url: https://gateway.example.com
request: {path: /send, form: {to: "{to}", text: "{text}"}}
answer: {id: "header:X-Id", outcomes: [{status: 2xx, outcome: accepted}]}
verify: {by: certificate}
receipts:
  each: json:/results
  reference: json:/id
  state: json:/status/name
  code: json:/status/code
  states: {DELIVERED: delivered, GONE: undelivered}
  causes: {GONE: expired, "27": absent}
reply: {body: ACK/Jasmin, type: text/plain}
`

func TestSeveralReceiptsInOneCallbackAreRead(t *testing.T) {
	t.Parallel()
	c := open(t, parse(t, batch))
	said := &provider.Callback{
		Method: http.MethodPost, URL: callback, Certificate: true,
		Body: []byte(`{"results":[
		{"id":1234567,"status":{"name":"DELIVERED"}}, {"id":"b","status":{"name":"GONE","code":27}}, {"id":"c","status":{"name":"GONE"}}, {"other":1}]}`),
	}
	want := provider.CallbackContent{
		Answer: "ACK/Jasmin", AnswerType: "text/plain",
		Receipts: []provider.Receipt{
			{Reference: "1234567", State: provider.Delivered, Code: "DELIVERED"},
			{Reference: "b", State: provider.Undelivered, Cause: provider.Absent, Code: "GONE/27"},
			{Reference: "c", State: provider.Undelivered, Cause: provider.Expired, Code: "GONE"},
		},
	}
	webtest.CheckContent(t, c, said, want)
	said.Certificate = false
	webtest.CheckForged(t, c, said)
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	c := open(t, parse(t, batch))
	many := make([]map[string]any, 1001)
	for i := range many {
		many[i] = map[string]any{"id": i, "status": map[string]any{"name": "DELIVERED"}}
	}
	tooMany, err := json.Marshal(map[string]any{"results": many})
	if err != nil {
		t.Fatal(err)
	}
	certain := func(body string) *provider.Callback {
		return &provider.Callback{
			Method: http.MethodPost, URL: callback, Certificate: true, Body: []byte(body),
		}
	}
	calls := webtest.Bodies(certain, `{"results":`, `{} {}`,
		`{"results":[{"status":{"name":"DELIVERED"}}]}`)
	calls["too many"] = certain(string(tooMany))
	webtest.CheckRefused(t, c, provider.ErrMalformed, calls)
}

func FuzzReadCallback(f *testing.F) {
	for _, name := range []string{"kannel", "clicksend"} {
		c := receiptCallback(f, name, webtest.Receipt{State: provider.Delivered})
		f.Add(c.Method, c.URL, "Basic eDp5", c.Body)
	}
	f.Add("POST", callback+"?secret=x;y", "",
		[]byte(`{"results":[{"id":"1","status":{"name":"DELIVERED"}}]}`))
	strict := []provider.CallbackReader{}
	for _, name := range []string{"kannel", "clicksend"} {
		values := document(f, name, nil)
		values["verify"].(map[string]any)["secret_files"] = "old"
		strict = append(strict, open(f, values))
	}
	accepting := open(f, parse(f, batch))
	f.Fuzz(func(t *testing.T, method, address, authorization string, body []byte) {
		c := &provider.Callback{
			Method: method, URL: address,
			Header: map[string][]string{"Authorization": {authorization}}, Body: body,
		}
		for _, l := range strict {
			if content, err := l.ReadCallback(c); err == nil || content.Receipts != nil ||
				content.Inbound != nil {
				t.Error("accepted a caller without the secret")
			}
		}
		c.Certificate = true
		content, err := accepting.ReadCallback(c)
		if err != nil && !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("a genuine callback: %v", err)
		}
		for _, r := range content.Receipts {
			if r.Reference == "" || len(r.Code) > 128 {
				t.Errorf("a receipt without reference or with a code of %d bytes", len(r.Code))
			}
		}
	})
}
