package vonage

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
)

// statusBody and statusToken were made with another tool: an HS256 token under the secret, whose payload_hash is
// the SHA-256 of the body.
const (
	statusBody  = `{"channel":"sms","message_uuid":"u1","to":"447700900123","from":"ACME","timestamp":"2026-11-21T10:00:00Z","status":"undeliverable","error":{"type":"https://developer.vonage.com/api-errors/messages#1190","title":"1190","detail":"447700900123"},"client_ref":"0123456789abcdef0123456789abcdef"}`
	statusToken = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3OTUyNTUyMDAsImp0aSI6ImM1YmE4ZjI0LTFhMTQtNGMxMC1iZmRmLTNmYmU4Y2U1MTFiNSIsImlzcyI6IlZvbmFnZSIsInBheWxvYWRfaGFzaCI6ImJjMjk4MjM4N2IyOTA5ZTI2MjdlNDJiMmIyOWI2MjU0ZGY0OGJlMDRlMWM1NDU5ZDgzZWM5NzM1OTM0OWRmYjIiLCJhcGlfa2V5IjoiYWJjZDEyMzQiLCJhcHBsaWNhdGlvbl9pZCI6Ijc4ZDMzNWZhLTMyM2QtMDExNC05YzNkLWQ2ZjBkNDg5NjhjZiJ9.sXwQmJsX1Z0zvfUMAsTfa57eHHOac0jO8bLZCEgYUtk"
)

func statusCall() *provider.Callback {
	return &provider.Callback{
		Method: http.MethodPost, URL: public, At: now, Body: []byte(statusBody),
		Header: map[string][]string{"Authorization": {"Bearer " + statusToken}, "Content-Type": {"application/json"}},
	}
}

func listener() Config {
	return Config{APIKey: apiKey, Application: application, Secrets: []string{"the older s3cret", secret}, Callback: public}
}

func TestTokenOfAnotherToolIsBelieved(t *testing.T) {
	t.Parallel()
	got, err := New(listener()).Hear(statusCall())
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Heard{Once: "c5ba8f24-1a14-4c10-bfdf-3fbe8ce511b5", Receipts: []provider.Receipt{{
		Reference: "u1", Key: key, State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undeliverable/1190", At: now,
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestForgedAndStaleStatusesSayNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call func(*provider.Callback)
		cfg  func(*Config)
		want error
	}{
		"no token":   {call: func(c *provider.Callback) { delete(c.Header, "Authorization") }, want: provider.ErrForged},
		"basic":      {call: func(c *provider.Callback) { c.Header["Authorization"] = []string{"Basic YTpi"} }, want: provider.ErrForged},
		"other body": {call: func(c *provider.Callback) { c.Body[0] = '[' }, want: provider.ErrForged},
		"no body":    {call: func(c *provider.Callback) { c.Body = nil }, want: provider.ErrForged},
		"longer token": {call: func(c *provider.Callback) {
			c.Header["Authorization"][0] = strings.TrimSuffix(c.Header["Authorization"][0], "g") + "A"
		}, want: provider.ErrForged},
		"no secret":           {cfg: func(c *Config) { c.Secrets = nil }, want: provider.ErrForged},
		"another secret":      {cfg: func(c *Config) { c.Secrets = []string{"x"} }, want: provider.ErrForged},
		"another account":     {cfg: func(c *Config) { c.APIKey = "other" }, want: provider.ErrForged},
		"another application": {cfg: func(c *Config) { c.Application = "other" }, want: provider.ErrForged},
		"six minutes late":    {call: func(c *provider.Callback) { c.At = now.Add(6 * time.Minute) }, want: provider.ErrStale},
		"six minutes early":   {call: func(c *provider.Callback) { c.At = now.Add(-6 * time.Minute) }, want: provider.ErrStale},
		"four minutes late":   {call: func(c *provider.Callback) { c.At = now.Add(4 * time.Minute) }},
		"no account named":    {cfg: func(c *Config) { c.APIKey, c.Application = "", "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, cfg := statusCall(), listener()
			if c.call != nil {
				c.call(call)
			}
			if c.cfg != nil {
				c.cfg(&cfg)
			}
			got, err := New(cfg).Hear(call)
			if !errors.Is(err, c.want) || (err != nil) != (len(got.Receipts) == 0) {
				t.Errorf("%+v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// A token that says how it wants to be checked is not asked.
func TestTokensWithoutASignatureAreForged(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(statusToken, ".")
	payload, _, _ := strings.Cut(rest, ".")
	for name, token := range map[string]string{
		"alg none": "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + payload + ".",
		"two dots": "..", "nothing": "", "no payload": "eyJhbGciOiJIUzI1NiJ9..",
	} {
		call := statusCall()
		call.Header["Authorization"] = []string{"Bearer " + token}
		if _, err := New(listener()).Hear(call); !errors.Is(err, provider.ErrForged) {
			t.Errorf("%s: %v, want ErrForged", name, err)
		}
	}
}

func TestClaimsThatAreMissingMakeATokenForged(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"iss", "jti", "iat", "payload_hash", "api_key"} {
		call := signedStatus(statusBody, missing)
		if _, err := New(listener()).Hear(call); !errors.Is(err, provider.ErrForged) {
			t.Errorf("without %s: %v, want ErrForged", missing, err)
		}
	}
	if _, err := New(listener()).Hear(signedStatus(statusBody, "application_id")); err != nil {
		t.Errorf("without an application: %v", err)
	}
}

func TestGenuineStatusesThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{`, `[]`, `{"channel":5}`, `{"channel":"sms","status":"delivered"}`} {
		if _, err := New(listener()).Hear(signedStatus(body, "")); !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", body, err)
		}
	}
}

func TestEventsOfOtherProductsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"channel":"whatsapp","message_uuid":"u","status":"read"}`, `{"channel":"sms","message_type":"image"}`, `{}`} {
		got, err := New(listener()).Hear(signedStatus(body, ""))
		if err != nil || len(got.Receipts)+len(got.Inbound) != 0 || got.Once == "" {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// receiptForm are the parameters of a delivery receipt whose sig was made with another tool.
func receiptForm() map[string]string {
	return map[string]string{
		"msisdn": "447700900123", "to": "ACME", "network-code": "23415", "messageId": "0A01", "price": "0.03330000",
		"status": "failed", "scts": "2611211000", "err-code": "2", "client-ref": key, "api-key": apiKey,
		"message-timestamp": "2026-11-21 10:00:00", "timestamp": "1795255200", "nonce": "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
		"sig": "13B1B6AC801DE6EE99E662250AC9270009C3B31B72E61BB673F4F6AFCB0C7C92",
	}
}

func listenerSMS() Config {
	cfg := listener()
	cfg.API, cfg.Application = SMS, ""
	return cfg
}

// An account chooses in which form its callbacks come. All are signed alike.
func TestSignatureOfAnotherToolIsBelievedInEveryForm(t *testing.T) {
	t.Parallel()
	want := provider.Receipt{
		Reference: "0A01", Key: key, State: provider.Undelivered, Cause: provider.Absent, Code: "failed/2", At: now,
	}
	for name, write := range forms {
		got, err := New(listenerSMS()).Hear(write(receiptForm()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]provider.Receipt{want}, got.Receipts); diff != "" || got.Once == "" {
			t.Errorf("%s: once %q\n%s", name, got.Once, diff)
		}
	}
}

func TestForgedAndStaleReceiptsSayNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]string)
		at     time.Time
		want   error
	}{
		"no signature":      {change: func(p map[string]string) { delete(p, "sig") }, want: provider.ErrForged},
		"short signature":   {change: func(p map[string]string) { p["sig"] = "AB" }, want: provider.ErrForged},
		"other status":      {change: func(p map[string]string) { p["status"] = "delivered" }, want: provider.ErrForged},
		"one field more":    {change: func(p map[string]string) { p["extra"] = "" }, want: provider.ErrForged},
		"other account":     {change: func(p map[string]string) { p["api-key"] = "other"; p["sig"] = signature(p) }, want: provider.ErrForged},
		"no time":           {change: func(p map[string]string) { delete(p, "timestamp"); p["sig"] = signature(p) }, want: provider.ErrMalformed},
		"nothing in it":     {change: func(p map[string]string) { delete(p, "messageId"); delete(p, "client-ref"); p["sig"] = signature(p) }, want: provider.ErrMalformed},
		"lower-case digits": {change: func(p map[string]string) { p["sig"] = strings.ToLower(p["sig"]) }},
		"six minutes late":  {at: now.Add(6 * time.Minute), want: provider.ErrStale},
		"six minutes early": {at: now.Add(-6 * time.Minute), want: provider.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parameters := maps.Clone(receiptForm())
			if c.change != nil {
				c.change(parameters)
			}
			for form, write := range forms {
				call := write(parameters)
				if !c.at.IsZero() {
					call.At = c.at
				}
				got, err := New(listenerSMS()).Hear(call)
				if !errors.Is(err, c.want) || (err != nil) != (len(got.Receipts) == 0) {
					t.Errorf("%s: %+v, %v; want %v", form, got, err, c.want)
				}
			}
		})
	}
}

func TestParametersThatCannotBeSignedAreForged(t *testing.T) {
	t.Parallel()
	good := string(forms["form"](receiptForm()).Body)
	for name, c := range map[string]struct{ kind, body string }{
		"twice":      {"application/x-www-form-urlencoded", good + "&status=delivered"},
		"broken":     {"application/x-www-form-urlencoded", "%zz"},
		"nested":     {"application/json", `{"status":{"a":1}}`},
		"not object": {"application/json", `[]`},
		"nothing":    {"", ""},
	} {
		call := forms["form"](receiptForm())
		call.Header["Content-Type"], call.Body = []string{c.kind}, []byte(c.body)
		if _, err := New(listenerSMS()).Hear(call); !errors.Is(err, provider.ErrForged) {
			t.Errorf("%s: %v, want ErrForged", name, err)
		}
	}
}

func TestPartsOfInboundMessagesNeedTheirPlace(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"type": "text", "messageId": "mo", "msisdn": "447700900123", "to": "12345", "text": "x", "api-key": apiKey, "timestamp": "1795255200",
		"concat": "true", "concat-ref": "08B5", "concat-total": "2", "concat-part": "1",
	}
	hear := func(name, value string) (provider.Heard, error) {
		p := maps.Clone(whole)
		p[name] = value
		p["sig"] = signature(p)
		return New(listenerSMS()).Hear(forms["form"](p))
	}
	for _, c := range [][2]string{{"concat-part", "0"}, {"concat-part", "3"}, {"concat-total", ""}, {"concat-total", "900"}} {
		if _, err := hear(c[0], c[1]); !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("%v: %v, want ErrMalformed", c, err)
		}
	}
	one, err1 := hear("concat-part", "1")
	two, err2 := hear("concat-part", "2")
	if err1 != nil || err2 != nil || one.Inbound[0].Group != two.Inbound[0].Group || two.Inbound[0].Part != 1 || two.Inbound[0].Parts != 2 {
		t.Errorf("%+v, %v; %+v, %v", one, err1, two, err2)
	}
}

func TestStatusesAndCodesHaveOneMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read         func(status, code string) (provider.ReceiptState, provider.Cause)
		status, code string
		state        provider.ReceiptState
		cause        provider.Cause
	}{
		{statusState, "submitted", "", provider.Pending, ""},
		{statusState, "submitted", "1220", provider.Pending, ""},
		{statusState, "delivered", "", provider.Delivered, ""},
		{statusState, "read", "", provider.Pending, ""},
		{statusState, "undeliverable", "1490", provider.Pending, ""},
		{statusState, "undeliverable", "1360", provider.Undelivered, provider.Expired},
		{statusState, "undeliverable", "", provider.Undelivered, ""},
		{statusState, "rejected", "1240", provider.Undelivered, provider.OptedOut},
		{statusState, "rejected", "1210", provider.Undelivered, provider.Spam},
		{statusState, "rejected", "1120", provider.Undelivered, provider.BadSender},
		{statusState, "rejected", "1070", provider.Undelivered, provider.NoCredit},
		{statusState, "rejected", "1310", provider.Undelivered, provider.NotMobile},
		{receiptState, "accepted", "0", provider.Pending, ""},
		{receiptState, "buffered", "0", provider.Pending, ""},
		{receiptState, "unknown", "1", provider.Pending, ""},
		{receiptState, "delivered", "0", provider.Delivered, ""},
		{receiptState, "expired", "1", provider.Undelivered, provider.Expired},
		{receiptState, "failed", "2", provider.Undelivered, provider.Absent},
		{receiptState, "failed", "3", provider.Undelivered, provider.UnknownNumber},
		{receiptState, "failed", "9", provider.Undelivered, provider.OptedOut},
		{receiptState, "failed", "777", provider.Undelivered, ""},
		{receiptState, "rejected", "51", provider.Undelivered, provider.BadSender},
		{receiptState, "rejected", "6", provider.Undelivered, provider.Spam},
	} {
		if state, cause := c.read(c.status, c.code); state != c.state || cause != c.cause {
			t.Errorf("%s/%s is %v %q, want %v %q", c.status, c.code, state, cause, c.state, c.cause)
		}
	}
}
