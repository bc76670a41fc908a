package vonage

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// statusBody and statusToken were made with another tool: an HS256 token under the secret, whose
// payload_hash is the SHA-256 of the body.
const (
	statusBody  = `{"channel":"sms","message_uuid":"u1","to":"447700900123","from":"ACME","timestamp":"2026-11-21T10:00:00Z","status":"undeliverable","error":{"type":"https://developer.vonage.com/api-errors/messages#1190","title":"1190","detail":"447700900123"},"client_ref":"0123456789abcdef0123456789abcdef"}`
	statusToken = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3OTUyNTUyMDAsImp0aSI6ImM1YmE4ZjI0LTFhMTQtNGMxMC1iZmRmLTNmYmU4Y2U1MTFiNSIsImlzcyI6IlZvbmFnZSIsInBheWxvYWRfaGFzaCI6ImJjMjk4MjM4N2IyOTA5ZTI2MjdlNDJiMmIyOWI2MjU0ZGY0OGJlMDRlMWM1NDU5ZDgzZWM5NzM1OTM0OWRmYjIiLCJhcGlfa2V5IjoiYWJjZDEyMzQiLCJhcHBsaWNhdGlvbl9pZCI6Ijc4ZDMzNWZhLTMyM2QtMDExNC05YzNkLWQ2ZjBkNDg5NjhjZiJ9.sXwQmJsX1Z0zvfUMAsTfa57eHHOac0jO8bLZCEgYUtk"
)

func statusCall() *provider.Callback {
	return &provider.Callback{
		Method: http.MethodPost, URL: public, At: now, Body: []byte(statusBody),
		Header: map[string][]string{
			"Authorization": {"Bearer " + statusToken}, "Content-Type": {"application/json"},
		},
	}
}

func listener() Config {
	return Config{
		APIKey: apiKey, Application: application, Secrets: []string{older, secret},
		Callback: public,
	}
}

// channelWith returns a function that makes channels with these secrets.
func channelWith(cfg Config) func(secrets ...string) provider.CallbackReader {
	return func(secrets ...string) provider.CallbackReader {
		cfg := cfg
		cfg.Secrets = secrets
		return New(cfg)
	}
}

func TestTokenOfAnotherToolIsAccepted(t *testing.T) {
	t.Parallel()
	want := provider.CallbackContent{
		ReplayID: "c5ba8f24-1a14-4c10-bfdf-3fbe8ce511b5",
		Receipts: []provider.Receipt{{
			Reference: "u1", Key: key, State: provider.Undelivered, Cause: provider.UnknownNumber,
			Code: "undeliverable/1190",
		}},
	}
	webtest.CheckContent(t, New(listener()), statusCall(), want)
	anybody := listener()
	anybody.APIKey, anybody.Application = "", ""
	webtest.CheckContent(t, New(anybody), statusCall(), want)
}

func TestForgedStatusesSayNothing(t *testing.T) {
	t.Parallel()
	webtest.CheckTampered(t, New(listener()), statusCall, webtest.Changes{
		"no token": func(c *provider.Callback) { delete(c.Header, "Authorization") },
		"basic": func(c *provider.Callback) {
			c.Header["Authorization"] = []string{
				"Basic YTpi",
			}
		},
		"other body": func(c *provider.Callback) { c.Body[0] = '[' },
		"no body":    func(c *provider.Callback) { c.Body = nil },
		"longer token": func(c *provider.Callback) {
			c.Header["Authorization"][0] = strings.TrimSuffix(c.Header["Authorization"][0], "g") +
				"A"
		},
	})
	webtest.CheckSecrets(t, channelWith(listener()), statusCall(), secret, older)
	account, application := listener(), listener()
	account.APIKey, application.Application = "other", "other"
	webtest.CheckForged(t, New(account), statusCall())
	webtest.CheckForged(t, New(application), statusCall())
}

func TestStatusesOfAnotherTimeAreStale(t *testing.T) {
	t.Parallel()
	webtest.CheckAgeLimits(t, New(listener()), aged(statusCall), 25*time.Hour, 5*time.Minute)
}

// aged shifts the time at which genuine callbacks arrive.
func aged(genuine func() *provider.Callback) func(age time.Duration) *provider.Callback {
	return func(age time.Duration) *provider.Callback {
		call := genuine()
		call.At = now.Add(age)
		return call
	}
}

func TestCallbacksHaveReplayIDs(t *testing.T) {
	t.Parallel()
	webtest.CheckReplayID(t, New(listener()), statusCall(), signedStatus(statusBody, ""))
	another := receiptForm()
	another["nonce"] = "another"
	another["sig"] = signature(another)
	for _, write := range forms {
		webtest.CheckReplayID(t, New(listenerSMS()), write(receiptForm()), write(another))
	}
}

// TestTokensAreValidFromWhenToWhenTheySay, with a tolerance of a minute.
func TestTokensAreValidFromWhenToWhenTheySay(t *testing.T) {
	t.Parallel()
	second := func(n int64) any { return now.Unix() + n }
	for name, c := range map[string]struct {
		claim string
		value any
		want  error
	}{
		"ended a moment ago": {"exp", second(-59), nil},
		"ended":              {"exp", second(-61), provider.ErrStale},
		"begins in a moment": {"nbf", second(59), nil},
		"begins later":       {"nbf", second(61), provider.ErrStale},
		"ends later":         {"exp", second(900), nil}, "has begun": {"nbf", second(-900), nil},
	} {
		if _, err := New(listener()).ReadCallback(
			signedWith(statusBody, map[string]any{c.claim: c.value})); !errors.Is(err, c.want) ||
			(err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestParametersCannotBeCutOtherwise: names that contain & and = would be another cut of the signed
// text.
func TestParametersCannotBeCutOtherwise(t *testing.T) {
	t.Parallel()
	genuine := receiptForm()
	names := slices.Sorted(maps.Keys(genuine))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "sig" })
	for i := range len(names) - 1 { // field i becomes part of the next name
		cut := maps.Clone(genuine)
		delete(cut, names[i])
		delete(cut, names[i+1])
		cut[names[i]+"="+genuine[names[i]]+"&"+names[i+1]] = genuine[names[i+1]]
		for _, write := range forms {
			if signature(cut) != signature(genuine) {
				t.Fatal("the cut has another signature: the test tries nothing")
			}
			if _, err := New(listenerSMS()).ReadCallback(write(cut)); !errors.Is(err,
				provider.ErrForged) {
				t.Errorf("%s within a name: %v", names[i], err)
			}
		}
	}
}

// TestTokensWithoutASignatureAreForged: the algorithm that a token names is ignored.
func TestTokensWithoutASignatureAreForged(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(statusToken, ".")
	payload, _, _ := strings.Cut(rest, ".")
	calls := map[string]*provider.Callback{}
	for name, token := range map[string]string{
		"alg none": "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + payload + ".",
		"two dots": "..", "nothing": "", "no payload": "eyJhbGciOiJIUzI1NiJ9..",
	} {
		call := statusCall()
		call.Header["Authorization"] = []string{"Bearer " + token}
		calls[name] = call
	}
	webtest.CheckRefused(t, New(listener()), provider.ErrForged, calls)
}

func TestClaimsThatAreMissingMakeATokenForged(t *testing.T) {
	t.Parallel()
	webtest.CheckRefused(t, New(listener()), provider.ErrForged,
		webtest.Bodies(func(missing string) *provider.Callback {
			return signedStatus(statusBody, missing)
		}, "iss", "jti", "iat", "payload_hash", "api_key"))
	if _, err := New(listener()).ReadCallback(signedStatus(statusBody,
		"application_id")); err != nil {
		t.Errorf("without an application: %v", err)
	}
}

func status(body string) *provider.Callback { return signedStatus(body, "") }

func TestGenuineStatusesThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	webtest.CheckRefused(t, New(listener()), provider.ErrMalformed, webtest.Bodies(
		status, `{`, `[]`, `{"channel":5}`, `{"channel":"sms","status":"delivered"}`,
	))
}

func TestEventsOfOtherProductsAreLeftAlone(t *testing.T) {
	t.Parallel()
	webtest.CheckIgnored(t, New(listener()), webtest.Bodies(
		status, `{"channel":"whatsapp","message_uuid":"u","status":"read"}`,
		`{"channel":"sms","message_type":"image"}`, `{}`,
	))
	if content, err := New(listener()).ReadCallback(status(`{}`)); err != nil ||
		content.ReplayID == "" {
		t.Errorf("an event without a token id, so a replay could not be detected: %v", err)
	}
}

// receiptForm holds the parameters of a delivery receipt whose sig was made with another tool.
func receiptForm() map[string]string {
	return map[string]string{
		"msisdn": "447700900123", "to": "ACME", "network-code": "23415", "messageId": "0A01",
		"price":  "0.03330000",
		"status": "failed", "scts": "2611211000", "err-code": "2", "client-ref": key,
		"api-key":           apiKey,
		"message-timestamp": "2026-11-21 10:00:00", "timestamp": "1795255200",
		"nonce": "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
		"sig":   "13B1B6AC801DE6EE99E662250AC9270009C3B31B72E61BB673F4F6AFCB0C7C92",
	}
}

func listenerSMS() Config {
	cfg := listener()
	cfg.API, cfg.Application = SMS, ""
	return cfg
}

// An account chooses the form of its callbacks. All are signed alike.
func TestSignatureOfAnotherToolIsAcceptedInEveryForm(t *testing.T) {
	t.Parallel()
	for _, write := range forms {
		call := write(receiptForm())
		content, err := New(listenerSMS()).ReadCallback(call)
		if err != nil {
			t.Fatal(err)
		}
		webtest.CheckContent(t, New(listenerSMS()), call,
			provider.CallbackContent{ReplayID: content.ReplayID, Receipts: []provider.Receipt{{
				Reference: "0A01", Key: key, State: provider.Undelivered, Cause: provider.Absent,
				Code: "failed/2",
			}}})
	}
}

// written returns a callback of the SMS API in one of its forms, after a change of its parameters.
func written(form string, change func(map[string]string)) *provider.Callback {
	parameters := receiptForm()
	change(parameters)
	return forms[form](parameters)
}

func TestForgedAndMalformedReceiptsSayNothing(t *testing.T) {
	t.Parallel()
	for form := range forms {
		forged, malformed := map[string]*provider.Callback{}, map[string]*provider.Callback{}
		for name, change := range map[string]func(map[string]string){
			"no signature":    func(p map[string]string) { delete(p, "sig") },
			"short signature": func(p map[string]string) { p["sig"] = "AB" },
			"other status":    func(p map[string]string) { p["status"] = "delivered" },
			"one field more":  func(p map[string]string) { p["extra"] = "" },
			"other account":   func(p map[string]string) { p["api-key"] = "other"; p["sig"] = signature(p) },
		} {
			forged[form+", "+name] = written(form, change)
		}
		for name, change := range map[string]func(map[string]string){
			"no time": func(p map[string]string) {
				delete(p, "timestamp")
				p["sig"] = signature(p)
			},
			"nothing in it": func(p map[string]string) {
				delete(p, "messageId")
				delete(p, "client-ref")
				p["sig"] = signature(p)
			},
		} {
			malformed[form+", "+name] = written(form, change)
		}
		webtest.CheckRefused(t, New(listenerSMS()), provider.ErrForged, forged)
		webtest.CheckRefused(t, New(listenerSMS()), provider.ErrMalformed, malformed)
		webtest.CheckSecrets(t, channelWith(listenerSMS()), forms[form](receiptForm()), secret, older)
		lower := written(form, func(p map[string]string) { p["sig"] = strings.ToLower(p["sig"]) })
		if content, err := New(listenerSMS()).ReadCallback(lower); err != nil ||
			len(content.Receipts) == 0 {
			t.Errorf("%s: a signature in lower case: %v", form, err)
		}
	}
}

func TestReceiptsOfAnotherTimeAreStale(t *testing.T) {
	t.Parallel()
	for name, write := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			genuine := func() *provider.Callback { return write(receiptForm()) }
			webtest.CheckAgeLimits(t, New(listenerSMS()), aged(genuine), 25*time.Hour,
				5*time.Minute)
		})
	}
}

func TestParametersThatCannotBeSignedAreForged(t *testing.T) {
	t.Parallel()
	good := string(forms["form"](receiptForm()).Body)
	calls := map[string]*provider.Callback{}
	for name, c := range map[string]struct{ kind, body string }{
		"twice":      {"application/x-www-form-urlencoded", good + "&status=delivered"},
		"broken":     {"application/x-www-form-urlencoded", "%zz"},
		"nested":     {"application/json", `{"status":{"a":1}}`},
		"not object": {"application/json", `[]`},
		"nothing":    {"", ""},
	} {
		call := forms["form"](receiptForm())
		call.Header["Content-Type"], call.Body = []string{c.kind}, []byte(c.body)
		calls[name] = call
	}
	webtest.CheckRefused(t, New(listenerSMS()), provider.ErrForged, calls)
}

func TestPartsOfInboundMessagesNeedTheirPlace(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"type": "text", "messageId": "mo", "msisdn": "447700900123", "to": "12345", "text": "x",
		"api-key": apiKey, "timestamp": "1795255200",
		"concat": "true", "concat-ref": "08B5", "concat-total": "2", "concat-part": "1",
	}
	read := func(name, value string) (provider.CallbackContent, error) {
		p := maps.Clone(whole)
		p[name] = value
		p["sig"] = signature(p)
		return New(listenerSMS()).ReadCallback(forms["form"](p))
	}
	for _, c := range [][2]string{
		{"concat-part", "0"}, {"concat-part", "3"}, {"concat-total", ""}, {"concat-total", "900"},
	} {
		if _, err := read(c[0], c[1]); !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("%v: %v, want ErrMalformed", c, err)
		}
	}
	one, err1 := read("concat-part", "1")
	two, err2 := read("concat-part", "2")
	if err1 != nil || err2 != nil || one.Inbound[0].Group != two.Inbound[0].Group ||
		two.Inbound[0].Part != 1 || two.Inbound[0].Parts != 2 {
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
		{statusState, "rejected", "1320", provider.Pending, ""},
		{statusState, "rejected", "1330", provider.Pending, ""},
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
