package httpapi_test

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/web"
)

// every is a description with a value in every kind of place.
const every = `
base_url: https://gateway.example.com
from: DEFAULT
secrets: {token: password}
alphabet: {gsm7: plain, ucs2: unicode}
longest_validity: 1h
request:
  path: "/accounts/7/{to_digits}"
  headers: {Authorization: "Bearer {secret:token}", Idempotency-Key: "{key}"}
  query: {attempt: "{attempt}", literal: "a{{b}}c"}
  BODY
answer: {id: "json:/id", outcomes: [{status: 2xx, outcome: accepted}]}
`

const (
	jsonBody = `json: {to: "{to}", msg: {body: "{text}", list: ["{from}", 7, true, null]}, ttl: {$number: "{validity_seconds}"}, coding: "{alphabet}"}`
	formBody = `form: {to: "{to}", body: "{text}", from: "{from}", ttl: "{validity_minutes}"}`
	xmlBody  = `xml: '<?xml version="1.0"?><sms to="{to}"><from>{from}</from><body kind="{alphabet}">{text}</body></sms>'`
)

// describe returns every with a body, or with another part of the request.
func describe(body string) string {
	text := strings.Replace(every, "BODY", body, 1)
	if !strings.Contains(body, "{validity") {
		text = strings.Replace(text, "longest_validity: 1h\n", "", 1)
	}
	return text
}

func compose(t testing.TB, body string, s *provider.Submission) *web.Request {
	t.Helper()
	r, err := httpapi.APIOf(open(t, parse(t, describe(body)))).Compose(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestsAreWrittenAsDescribed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		jsonBody: `{"coding":"plain","msg":{"body":"Your code is 123456","list":["ACME",7,true,null]},"to":"+447700900123","ttl":3600}`,
		formBody: `body=Your+code+is+123456&from=ACME&to=%2B447700900123&ttl=60`,
		xmlBody:  `<?xml version="1.0"?><sms to="+447700900123"><from>ACME</from><body kind="plain">Your code is 123456</body></sms>`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := submission()
			s.Validity = time.Now().Add(5 * time.Hour) // longer than the gateway keeps it
			r := compose(t, body, s)
			if diff := cmp.Diff(want, string(r.Body)); diff != "" {
				t.Error(diff)
			}
			if r.Method != http.MethodPost ||
				r.URL != "/accounts/7/447700900123?attempt=1&literal=a%7Bb%7Dc" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if r.Header.Get("Authorization") != "Bearer "+password ||
				r.Header.Get("Idempotency-Key") != key {
				t.Error("a header field is missing")
			}
		})
	}
}

func TestFieldsWithoutValueAreLeftOut(t *testing.T) {
	t.Parallel()
	s := submission()
	s.From = ""
	if got, want := string(compose(t, formBody, s).Body),
		`body=Your+code+is+123456&from=DEFAULT&to=%2B447700900123`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(compose(t, jsonBody, s).Body); strings.Contains(got, "ttl") {
		t.Errorf("got %s, want no ttl", got)
	}
}

func TestKannelIsWrittenAsItsGuideSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := submission()
		s.Text, s.Validity = "Привет & more=1", time.Now().Add(90*time.Second)
		r, err := httpapi.APIOf(open(t, document(t, "kannel", nil))).Compose(s)
		if err != nil {
			t.Fatal(err)
		}
		path, query, _ := strings.Cut(r.URL, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		want := url.Values{
			"username": {"dispatcher"}, "password": {password}, "from": {"ACME"},
			"to": {"+447700900123"}, "text": {s.Text}, "charset": {"UTF-8"},
			"coding": {"2"}, "validity": {"2"}, "dlr-mask": {"27"},
			"dlr-url": {callback + "?key=" + key + "&secret=" + secret + "&status=%d"},
		}
		if diff := cmp.Diff(want, values); diff != "" || path != "/cgi-bin/sendsms" ||
			r.Method != http.MethodGet || len(r.Body) > 0 {
			t.Errorf("%s %s\n%s", r.Method, path, diff)
		}
	})
}

func TestTextGoesOutAsHexWhereAGatewayWantsThat(t *testing.T) {
	t.Parallel()
	s := submission()
	s.Text = "Aé😀"
	if got, want := string(compose(t, `form: {to: "{to}", hex: "{text_hex}"}`, s).Body),
		"hex=004100e9d83dde00&to=%2B447700900123"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHeadersWithLineBreaksAreNotSent(t *testing.T) {
	t.Parallel()
	s := submission()
	s.Key = "a\r\nHost: evil"
	api := httpapi.APIOf(open(t, parse(t, describe(formBody))))
	if _, err := api.Compose(s); err == nil {
		t.Error("composed a header field with a line break")
	}
}

// FuzzTextStaysInItsPlace tries to break out of the query and of each kind of body. The gateway
// must read exactly the text, in its place, and everything else unchanged.
func FuzzTextStaysInItsPlace(f *testing.F) {
	for _, text := range []string{
		"plain", `"}`, `","to":"+1`, `\`, "&to=+1", "=;&#", "</body><body>", "]]>", `" kind="x`,
		"{to}", "{{", "{secret:token}", "%26to=1", "a\x00b", "\u2028", "\r\n.\r\n", "+ ",
	} {
		f.Add(text, text)
	}
	apis := map[string]web.API{}
	for name, body := range map[string]string{
		"json": jsonBody, "form": formBody,
		"xml":   `xml: '<sms to="{to}" from="{from}"><body>{text}</body></sms>'`,
		"query": `query: {to: "{to}", body: "{text}", from: "{from}"}`,
	} {
		text := strings.Replace(describe(body),
			`  query: {attempt: "{attempt}", literal: "a{{b}}c"}`+"\n", "", 1)
		apis[name] = httpapi.APIOf(open(f, parse(f, text)))
	}
	f.Fuzz(func(t *testing.T, text, from string) {
		if !utf8.ValidString(text) || !utf8.ValidString(from) || text == "" || from == "" {
			return // the envelope refuses all others
		}
		s := submission()
		s.Text, s.From = text, from
		for name, api := range apis {
			r, err := api.Compose(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(readBack(t, name, r),
				map[string]string{
					"to": s.To, "from": readable(name, from), "body": readable(name, text),
				}); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if strings.Contains(string(r.Body), password) || strings.Contains(r.URL, password) {
				t.Errorf("%s: a text was replaced by a secret", name)
			}
		}
	})
}

// readable replaces the characters that XML cannot hold, as the encoder does.
func readable(name, text string) string {
	if name != "xml" {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF ||
			r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 {
			return r
		}
		return utf8.RuneError
	}, text)
}

// readBack reads a request as the gateway does.
func readBack(t testing.TB, name string, r *web.Request) map[string]string {
	t.Helper()
	switch name {
	case "json":
		var got struct {
			Coding, To string
			Msg        struct {
				Body string
				List []any
			}
		}
		if err := json.Unmarshal(r.Body, &got); err != nil || len(got.Msg.List) != 4 {
			t.Fatalf("%d entries, error %v", len(got.Msg.List), err)
		}
		return map[string]string{
			"to": got.To, "from": got.Msg.List[0].(string), "body": got.Msg.Body,
		}
	case "xml":
		var got struct {
			To   string   `xml:"to,attr"`
			From string   `xml:"from,attr"`
			Body []string `xml:"body"`
			Rest []struct {
				XMLName xml.Name
			} `xml:",any"`
		}
		if err := xml.Unmarshal(r.Body, &got); err != nil || len(got.Body) != 1 ||
			len(got.Rest) != 0 {
			t.Fatalf("%d bodies, error %v", len(got.Body), err)
		}
		return map[string]string{"to": got.To, "from": got.From, "body": got.Body[0]}
	}
	text := string(r.Body)
	if name == "query" {
		_, text, _ = strings.Cut(r.URL, "?")
	}
	values, err := url.ParseQuery(text)
	if err != nil || len(values) != 3 {
		t.Fatalf("%d fields, error %v", len(values), err)
	}
	return map[string]string{
		"to": values.Get("to"), "from": values.Get("from"), "body": values.Get("body"),
	}
}
