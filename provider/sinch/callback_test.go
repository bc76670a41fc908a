package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// signed returns a callback whose signature was made with another tool:
//
//	printf '%s' "$body.01JHNONCE.1795255200" | openssl dgst -sha256 -hmac sinch-callback-s3cret -binary | base64
func signed() *provider.Callback {
	return &provider.Callback{
		Method: "POST", URL: public, At: now,
		Header: map[string][]string{
			headerSignature: {"AZj0wXz+V2Zq4OJ3/S4m6QYaLJIuZaQ7bCDGg0ASrUg="},
			headerAlgorithm: {"HmacSHA256"},
			headerNonce:     {"01JHNONCE"}, headerTime: {"1795255200"},
		},
		Body: []byte(
			`{"type":"recipient_delivery_report_sms","batch_id":"b1","client_reference":"` + key +
				`","status":"Failed","code":402}`),
	}
}

func listener() *Channel { return channelWith("the older s3cret", secret).(*Channel) }

// channelWith returns a channel with these secrets.
func channelWith(secrets ...string) provider.CallbackReader {
	return New(Config{Secrets: secrets, Callback: public})
}

func TestSignatureOfAnotherToolIsAccepted(t *testing.T) {
	t.Parallel()
	webtest.CheckContent(t, listener(), signed(),
		provider.CallbackContent{ReplayID: "01JHNONCE", Receipts: []provider.Receipt{{
			Reference: "b1", Key: key, State: provider.Undelivered, Cause: provider.NetworkError,
			Code: "Failed/402",
		}}})
}

func TestForgedCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	webtest.CheckTampered(t, listener(), signed, webtest.Changes{
		"no signature":    func(c *provider.Callback) { delete(c.Header, headerSignature) },
		"other algorithm": func(c *provider.Callback) { c.Header[headerAlgorithm] = []string{"none"} },
		"other nonce": func(c *provider.Callback) {
			c.Header[headerNonce] = []string{
				"01JHOTHER",
			}
		},
		"other time": func(c *provider.Callback) {
			c.Header[headerTime] = []string{
				"1795255201",
			}
		},
		"other body":      func(c *provider.Callback) { c.Body[len(c.Body)-2] = '3' },
		"short signature": func(c *provider.Callback) { c.Header[headerSignature] = []string{"QUJD"} },
	})
	webtest.CheckSecrets(t, channelWith, signed(), secret, "the older s3cret")
}

// TestWhatWasSignedCannotBeCutOtherwise: the dots separate body, nonce and time in one way only.
func TestWhatWasSignedCannotBeCutOtherwise(t *testing.T) {
	t.Parallel()
	text := `{"type":"mo_text","id":"1","from":"447700900123","to":"60777","body":"STOP. Or 1.2.3","received_at":"2026-11-21T09:59:58Z"}.01JHNONCE.1795255200`
	signature, accepted := hmacOf(text), 0
	for i := range text {
		for j := i + 1; j < len(text); j++ {
			if text[i] != '.' || text[j] != '.' {
				continue
			}
			content, err := listener().ReadCallback(&provider.Callback{
				Method: "POST", URL: public,
				At: now, Body: []byte(text[:i]), Header: map[string][]string{
					headerSignature: {signature}, headerAlgorithm: {"HmacSHA256"},
					headerNonce: {text[i+1 : j]}, headerTime: {text[j+1:]},
				},
			})
			if err == nil {
				if accepted++; content.ReplayID != "01JHNONCE" ||
					content.Inbound[0].Text != "STOP. Or 1.2.3" ||
					content.Inbound[0].SentAt.Format(time.TimeOnly) != "09:59:58" {
					t.Errorf("%q was accepted: %+v", text[:i], content)
				}
			}
		}
	}
	if accepted != 1 {
		t.Errorf("%d cuts are accepted", accepted)
	}
	call := signed() // a signed nonce with a dot would be ambiguous
	call.Header[headerNonce], call.Header[headerSignature] = []string{"a.b"},
		[]string{hmacOf(string(call.Body) + ".a.b.1795255200")}
	webtest.CheckForged(t, listener(), call)
}

func hmacOf(text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestCallbacksOfAnotherTimeAreStale(t *testing.T) {
	t.Parallel()
	webtest.CheckAgeLimits(t, listener(), func(age time.Duration) *provider.Callback {
		call := signed()
		call.At = now.Add(age)
		return call
	}, 24*time.Hour, 5*time.Minute)
}

func TestTheNonceIsTheReplayID(t *testing.T) {
	t.Parallel()
	another := signed()
	another.Header[headerNonce] = []string{"01JHOTHER"}
	webtest.CheckReplayID(t, listener(), signed(), sign(another, string(another.Body)))
}

// TestACallbackWithoutANonceIsForged: a replay could not be detected. Its signature is valid and
// was made with another tool:
//
//	printf '%s' "$body..1795255200" | openssl dgst -sha256 -hmac sinch-callback-s3cret -binary | base64
func TestACallbackWithoutANonceIsForged(t *testing.T) {
	t.Parallel()
	calls := map[string]*provider.Callback{}
	for name, nonce := range map[string][]string{"empty": {""}, "missing": nil} {
		call := signed()
		call.Body = []byte(
			`{"type":"mo_text","id":"m1","from":"447700900123","to":"12345","body":"STOP"}`)
		call.Header[headerSignature] = []string{"fOBhnczwTEjJU//AUgB3m4+XDL/aZxYvD0cOUgf8km8="}
		call.Header[headerNonce] = nonce
		calls[name] = call
	}
	webtest.CheckRefused(t, listener(), provider.ErrForged, calls)
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	webtest.CheckRefused(t, listener(), provider.ErrMalformed, webtest.Bodies(
		resigned, `{`, `[]`, `{"type":"recipient_delivery_report_sms","status":"Delivered"}`,
		`{"type":5}`,
	))
}

func TestUnknownEventsAndReportsOnSeveralRecipientsAreLeftAlone(t *testing.T) {
	t.Parallel()
	webtest.CheckIgnored(t, listener(), webtest.Bodies(
		resigned, `{"type":"mo_binary","id":"x"}`, `{"type":"something_new"}`,
		`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","count":1},{"status":"Failed","count":1}]}`,
	))
	if content, err := listener().ReadCallback(resigned(`{"type":"something_new"}`)); err != nil ||
		content.ReplayID == "" {
		t.Errorf("an event without a nonce, so a replay could not be detected: %v", err)
	}
}

func TestReportOnTheWholeBatchIsThatOnItsRecipient(t *testing.T) {
	t.Parallel()
	got, err := listener().ReadCallback(
		resigned(
			`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","code":0,"count":1}]}`))
	if err != nil || len(got.Receipts) != 1 || got.Receipts[0].State != provider.Delivered ||
		got.Receipts[0].Reference != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestKeysOfOthersAreNotTakenForOurs(t *testing.T) {
	t.Parallel()
	got, err := listener().ReadCallback(
		resigned(
			`{"type":"recipient_delivery_report_sms","batch_id":"b","client_reference":"order 77","status":"Delivered"}`))
	if err != nil || got.Receipts[0].Key != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStatusesAndCodesHaveOneMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status string
		code   int
		state  provider.ReceiptState
		cause  provider.Cause
	}{
		{"Queued", 400, provider.Pending, provider.Unspecified},
		{"Dispatched", 401, provider.Pending, provider.Unspecified},
		{"Unknown", 0, provider.Pending, provider.Unspecified},
		{"SomethingNew", 402, provider.Pending, provider.Unspecified},
		{"Delivered", 0, provider.Delivered, provider.Unspecified},
		{"Failed", 402, provider.Undelivered, provider.NetworkError},
		{"Failed", 413, provider.Undelivered, provider.NoCredit},
		{"Failed", 410, provider.Undelivered, provider.BadSender},
		{"Failed", 999, provider.Undelivered, provider.Unspecified},
		{"Rejected", 408, provider.Undelivered, provider.Unspecified},
		{"Expired", 0, provider.Undelivered, provider.Expired},
		{"Expired", 406, provider.Undelivered, provider.Expired},
		{"Cancelled", 407, provider.Undelivered, provider.Deleted},
		{"Deleted", 0, provider.Undelivered, provider.Deleted},
		{"Aborted", 411, provider.Undelivered, provider.Unspecified},
	} {
		if state, cause := stateOf(c.status, c.code); state != c.state || cause != c.cause {
			t.Errorf("%s/%d is %v %q, want %v %q", c.status, c.code, state, cause, c.state, c.cause)
		}
	}
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	s := webtest.Message()
	s.From, s.Text = "ACME", "costs ${price}"
	for _, content := range startRig(t, webtest.Behaviour{}, nil).CheckReceipts(t, s,
		[]webtest.ReceiptCase{
			{
				Sent: webtest.Receipt{State: provider.Pending},
				Want: provider.Receipt{State: provider.Pending, Code: "Dispatched/401"},
			},
			{
				Sent: webtest.Receipt{State: provider.Delivered},
				Want: provider.Receipt{State: provider.Delivered, Code: "Delivered/0"},
			},
			{
				Sent: webtest.Receipt{State: provider.Undelivered, Code: "Expired/406"},
				Want: provider.Receipt{
					State: provider.Undelivered, Cause: provider.Expired, Code: "Expired/406",
				},
			},
		}) {
		if content.ReplayID == "" {
			t.Error("a report has no ReplayID")
		}
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	startRig(t, webtest.Behaviour{}, nil).CheckInbound(t,
		provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP"})
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	rig := startRig(t, webtest.Behaviour{Receipts: true},
		map[string]any{"callback_secret_files": nil})
	rig.CheckNoReceipts(t)
	if rig.Channel.Capabilities().LookupFor == 0 {
		t.Error("Lookup is false without callbacks, want true")
	}
}

func TestLookupFindsWhatWasTakenAndLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	webtest.CheckLookups(t, func(t *testing.T, b webtest.Behaviour, certain bool) webtest.Finder {
		return startRig(t, b, map[string]any{"absence_is_certain": certain}).Channel
	}, map[string]webtest.Lookup{
		"answered":           {Reply: providertest.Accept, Want: provider.Taken},
		"taken, answer lost": {Reply: providertest.Lose, Want: provider.Taken},
		"not taken":          {Reply: providertest.Cut, Want: provider.Unanswered},
		"not taken, absence counts as that": {
			Reply: providertest.Cut, Certain: true, Want: provider.NotTaken,
		},
	})
}

func TestLookupAcceptsNoOtherBatchAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{
		`{"batches":[{"id":"b","client_reference":"other"}]}`, `{"count":0}`, `{"batches":null}`,
		`[]`, ``,
	} {
		a := recorded(t, "created")
		a.Status, a.Body = http.StatusOK, []byte(body)
		if got := c.lookup(key).Result(a); got.State != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.lookup(key).Result(recorded(t, "unavailable")); got.State != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
}

// resigned returns a genuine callback with another body.
func resigned(body string) *provider.Callback { return sign(signed(), body) }

// sign replaces the body of a callback and signs it.
func sign(c *provider.Callback, body string) *provider.Callback {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body + "." + c.Get(headerNonce) + "." + c.Get(headerTime)))
	c.Body = []byte(body)
	c.Header[headerSignature] = []string{base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	return c
}

// FuzzReadCallback reads every body twice. Unsigned it must yield nothing. Signed it must not
// panic, and codes have a bounded length.
func FuzzReadCallback(f *testing.F) {
	f.Add(string(signed().Body), "", "", "")
	f.Add(`{"type":"mo_text","id":"x","from":"447700900123","to":"12345","body":"STOP"}`, "QUJD",
		"n", "1795255200")
	f.Add(
		`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","code":0,"count":1}]}`, "=", "", "x")
	f.Fuzz(func(t *testing.T, body, signature, nonce, stamp string) {
		c := listener()
		forged := resigned(body)
		forged.Header = map[string][]string{
			headerSignature: {signature}, headerNonce: {nonce}, headerTime: {stamp},
			headerAlgorithm: {algorithm},
		}
		webtest.CheckForged(t, c, forged)
		content, err := c.ReadCallback(resigned(body))
		webtest.CheckBounded(t, content, err)
	})
}
