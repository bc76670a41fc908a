package sinch

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
)

// signed is a callback whose signature was made with another tool:
//
//	printf '%s' "$body.01JHNONCE.1795255200" | openssl dgst -sha256 -hmac sinch-callback-s3cret -binary | base64
func signed() *provider.Callback {
	return &provider.Callback{
		Method: "POST", URL: "https://sms.example.com/receipts/sinch", At: now,
		Header: map[string][]string{
			headerSignature: {"AZj0wXz+V2Zq4OJ3/S4m6QYaLJIuZaQ7bCDGg0ASrUg="}, headerAlgorithm: {"HmacSHA256"},
			headerNonce: {"01JHNONCE"}, headerTime: {"1795255200"},
		},
		Body: []byte(`{"type":"recipient_delivery_report_sms","batch_id":"b1","client_reference":"` + key + `","status":"Failed","code":402}`),
	}
}

func listener() *Channel {
	return New(Config{Secrets: []string{"the older s3cret", secret}, Callback: "https://sms.example.com/receipts/sinch"})
}

func TestSignatureOfAnotherToolIsBelieved(t *testing.T) {
	t.Parallel()
	got, err := listener().Hear(signed())
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Heard{Once: "01JHNONCE", Receipts: []provider.Receipt{{
		Reference: "b1", Key: key, State: provider.Undelivered, Cause: provider.NetworkError, Code: "Failed/402", At: now,
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestForgedAndStaleCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*provider.Callback)
		want   error
	}{
		"no signature":       {func(c *provider.Callback) { delete(c.Header, headerSignature) }, provider.ErrForged},
		"other algorithm":    {func(c *provider.Callback) { c.Header[headerAlgorithm] = []string{"none"} }, provider.ErrForged},
		"other nonce":        {func(c *provider.Callback) { c.Header[headerNonce] = []string{"01JHOTHER"} }, provider.ErrForged},
		"other time":         {func(c *provider.Callback) { c.Header[headerTime] = []string{"1795255201"} }, provider.ErrForged},
		"other body":         {func(c *provider.Callback) { c.Body[len(c.Body)-2] = '3' }, provider.ErrForged},
		"short signature":    {func(c *provider.Callback) { c.Header[headerSignature] = []string{"QUJD"} }, provider.ErrForged},
		"six minutes late":   {func(c *provider.Callback) { c.At = now.Add(6 * time.Minute) }, provider.ErrStale},
		"six minutes early":  {func(c *provider.Callback) { c.At = now.Add(-6 * time.Minute) }, provider.ErrStale},
		"four minutes late":  {func(c *provider.Callback) { c.At = now.Add(4 * time.Minute) }, nil},
		"four minutes early": {func(c *provider.Callback) { c.At = now.Add(-4 * time.Minute) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := signed()
			call.Header = maps.Clone(call.Header)
			c.change(call)
			got, err := listener().Hear(call)
			if !errors.Is(err, c.want) || (err != nil) != (len(got.Receipts) == 0) {
				t.Errorf("%+v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestACallbackWithoutANonceIsForged: nothing could tell a replay of it. Its signature holds, made with another tool:
//
//	printf '%s' "$body..1795255200" | openssl dgst -sha256 -hmac sinch-callback-s3cret -binary | base64
func TestACallbackWithoutANonceIsForged(t *testing.T) {
	t.Parallel()
	for name, nonce := range map[string][]string{"empty": {""}, "missing": nil} {
		call := signed()
		call.Body = []byte(`{"type":"mo_text","id":"m1","from":"447700900123","to":"12345","body":"STOP"}`)
		call.Header[headerSignature] = []string{"fOBhnczwTEjJU//AUgB3m4+XDL/aZxYvD0cOUgf8km8="}
		call.Header[headerNonce] = nonce
		if got, err := listener().Hear(call); !errors.Is(err, provider.ErrForged) || len(got.Inbound) != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestWithoutASecretNobodyIsBelieved(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}).Hear(signed()); !errors.Is(err, provider.ErrForged) {
		t.Errorf("error %v, want ErrForged", err)
	}
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{`, `[]`, `{"type":"recipient_delivery_report_sms","status":"Delivered"}`, `{"type":5}`} {
		if _, err := listener().Hear(resigned(body)); !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("%s: error %v, want ErrMalformed", body, err)
		}
	}
}

func TestUnknownEventsAndReportsOnSeveralRecipientsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"type":"mo_binary","id":"x"}`, `{"type":"something_new"}`,
		`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","count":1},{"status":"Failed","count":1}]}`,
	} {
		got, err := listener().Hear(resigned(body))
		if err != nil || len(got.Receipts)+len(got.Inbound) != 0 || got.Once == "" {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestReportOnTheWholeBatchIsThatOnItsRecipient(t *testing.T) {
	t.Parallel()
	got, err := listener().Hear(resigned(`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","code":0,"count":1}]}`))
	if err != nil || len(got.Receipts) != 1 || got.Receipts[0].State != provider.Delivered || got.Receipts[0].Reference != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestKeysOfOthersAreNotTakenForOurs(t *testing.T) {
	t.Parallel()
	got, err := listener().Hear(resigned(`{"type":"recipient_delivery_report_sms","batch_id":"b","client_reference":"order 77","status":"Delivered"}`))
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
