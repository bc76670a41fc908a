package aws_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/web/webtest"
)

func tell(t testing.TB, cfg awstest.Config, r webtest.Receipt, at time.Time) *provider.Callback {
	t.Helper()
	submit := &webtest.Submit{To: "+447700900123", Key: key, Reference: "ref-1", Callback: callback, At: time.Now()}
	request, err := awstest.New(cfg).Receipt(submit, r)
	if err != nil {
		t.Fatal(err)
	}
	return asCallback(t, request, at)
}

func TestEventsAreHeard(t *testing.T) {
	t.Parallel()
	at := time.Now()
	older := account()
	older.Version1 = true
	for version, cfg := range map[string]awstest.Config{"version 1": older, "version 2": account()} {
		c := open(t, settings(nil))
		for said, want := range map[webtest.Receipt]provider.Receipt{
			{State: provider.Delivered}:                                     {State: provider.Delivered, Code: "TEXT_DELIVERED"},
			{State: provider.Pending}:                                       {State: provider.Pending, Code: "TEXT_SENT"},
			{State: provider.Delivered, Code: "TEXT_SUCCESSFUL"}:            {State: provider.Pending, Code: "TEXT_SUCCESSFUL"},
			{State: provider.Undelivered}:                                   {State: provider.Undelivered, Cause: provider.Absent, Code: "TEXT_UNREACHABLE"},
			{State: provider.Pending, Code: "TEXT_UNREACHABLE"}:             {State: provider.Pending, Code: "TEXT_UNREACHABLE"}, // not final
			{State: provider.Undelivered, Code: "TEXT_INVALID"}:             {State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "TEXT_INVALID"},
			{State: provider.Undelivered, Code: "TEXT_INVALID_MESSAGE"}:     {State: provider.Undelivered, Code: "TEXT_INVALID_MESSAGE"},
			{State: provider.Undelivered, Code: "TEXT_CARRIER_BLOCKED"}:     {State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_CARRIER_BLOCKED"},
			{State: provider.Undelivered, Code: "TEXT_BLOCKED"}:             {State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_BLOCKED"},
			{State: provider.Undelivered, Code: "TEXT_PROTECT_BLOCKED"}:     {State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_PROTECT_BLOCKED"},
			{State: provider.Undelivered, Code: "TEXT_CARRIER_UNREACHABLE"}: {State: provider.Undelivered, Cause: provider.NetworkError, Code: "TEXT_CARRIER_UNREACHABLE"},
			{State: provider.Undelivered, Code: "TEXT_SPAM"}:                {State: provider.Undelivered, Cause: provider.Spam, Code: "TEXT_SPAM"},
			{State: provider.Undelivered, Code: "TEXT_TTL_EXPIRED"}:         {State: provider.Undelivered, Cause: provider.Expired, Code: "TEXT_TTL_EXPIRED"},
			{State: provider.Undelivered, Code: "TEXT_UNKNOWN"}:             {State: provider.Pending, Code: "TEXT_UNKNOWN"}, // heard nothing for three days
			{State: provider.Undelivered, Code: "TEXT_SOMETHING_NEW"}:       {State: provider.Pending, Code: "TEXT_SOMETHING_NEW"},
			{State: provider.Undelivered, Code: "TEXT_447700900123"}:        {State: provider.Pending, Code: "other"},
		} {
			heard, err := c.Hear(tell(t, cfg, said, at))
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			want.Reference, want.Key, want.At = "ref-1", key, at
			if diff := cmp.Diff([]provider.Receipt{want}, heard.Receipts); diff != "" || heard.Once == "" {
				t.Errorf("%s: once %q, %s", version, heard.Once, diff)
			}
		}
	}
}

func TestSuccessfulIsDeliveredOnlyWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	said := tell(t, account(), webtest.Receipt{State: provider.Delivered, Code: "TEXT_SUCCESSFUL"}, time.Now())
	heard, err := open(t, settings(map[string]any{"successful": "delivered"})).Hear(said)
	if err != nil || heard.Receipts[0].State != provider.Delivered {
		t.Errorf("heard %+v, error %v", heard, err)
	}
}

func TestMessagesOfSubscribersAreHeard(t *testing.T) {
	t.Parallel()
	in := provider.Inbound{Reference: "in-1", From: "+447700900123", To: "+447700900999", Text: "STOP", At: time.Now()}
	request, err := awstest.New(account()).Inbound(callback, in)
	if err != nil {
		t.Fatal(err)
	}
	heard, err := open(t, settings(nil)).Hear(asCallback(t, request, in.At))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]provider.Inbound{in}, heard.Inbound); diff != "" || heard.Receipts != nil {
		t.Error(diff)
	}
}

// change rewrites a field of a message that SNS has signed.
func change(t testing.TB, c *provider.Callback, name, value string) {
	t.Helper()
	var message map[string]any
	if err := json.Unmarshal(c.Body, &message); err != nil {
		t.Fatal(err)
	}
	message[name] = value
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	c.Body = body
}

func TestForgedMessagesSayNothing(t *testing.T) {
	t.Parallel()
	elsewhere, unsigned, stranger := account(), account(), account()
	elsewhere.Topic = "arn:aws:sns:eu-central-1:999999999999:sms-events" // SNS signs it, for somebody else
	unsigned.Key = nil
	stranger.Key = signers()[1].key
	for how, forge := range map[string]func(*testing.T) *provider.Callback{
		"another account's topic": func(t *testing.T) *provider.Callback { return tell(t, elsewhere, webtest.Receipt{}, time.Now()) },
		"unsigned":                func(t *testing.T) *provider.Callback { return tell(t, unsigned, webtest.Receipt{}, time.Now()) },
		"another key":             func(t *testing.T) *provider.Callback { return tell(t, stranger, webtest.Receipt{}, time.Now()) },
		"expired certificate": func(t *testing.T) *provider.Callback {
			return tell(t, account(), webtest.Receipt{}, time.Now().Add(48*time.Hour))
		},
		"certificate of the future": func(t *testing.T) *provider.Callback {
			return tell(t, account(), webtest.Receipt{}, time.Now().Add(-48*time.Hour))
		},
		"raw delivery": func(t *testing.T) *provider.Callback {
			return &provider.Callback{
				Method: "POST", URL: callback, At: time.Now(), Body: []byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`),
				Header: map[string][]string{"X-Amz-Sns-Rawdelivery": {"true"}, "X-Amz-Sns-Topic-Arn": {topic}},
			}
		},
		"no JSON": func(*testing.T) *provider.Callback {
			return &provider.Callback{Method: "POST", URL: callback, At: time.Now()}
		},
	} {
		heard, err := open(t, settings(map[string]any{"sns_certificate_files": "certificate"})).Hear(forge(t))
		if !errors.Is(err, provider.ErrForged) || heard.Receipts != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	for field, value := range map[string]string{
		"Message": `{"eventType":"TEXT_DELIVERED","messageId":"x"}`, "MessageId": "x", "Timestamp": time.Now().UTC().Format(time.RFC3339), "Subject": "x",
		"TopicArn": topic + "x", "Type": "SubscriptionConfirmation", "SignatureVersion": "1", "Signature": "AAAA",
		"SigningCertURL": "https://sns.eu-central-1.amazonaws.com.evil.example/x.pem",
	} {
		forged := tell(t, account(), webtest.Receipt{State: provider.Undelivered}, time.Now())
		change(t, forged, field, value)
		if heard, err := open(t, settings(nil)).Hear(forged); !errors.Is(err, provider.ErrForged) || heard.Receipts != nil {
			t.Errorf("another %s: %v", field, err)
		}
	}
}

func TestCertificatesOfOtherHostsAreNotBelieved(t *testing.T) {
	t.Parallel()
	c := open(t, settings(nil))
	for address, good := range map[string]bool{
		"https://sns.us-gov-west-1.amazonaws.com/a.pem": true, "https://sns.cn-north-1.amazonaws.com.cn/a.pem": true,
		"http://sns.eu-central-1.amazonaws.com/a.pem": false, "https://sns.eu-central-1.amazonaws.com/a.txt": false,
		"https://s3.amazonaws.com/bucket/a.pem": false, "https://snsxeu.amazonaws.com/a.pem": false, "https://sns.eu.amazonaws.com@evil.example/a.pem": false,
		"https://evil.example/sns.eu-central-1.amazonaws.com/a.pem": false, "https://sns.eu-central-1.amazonaws.com:8443/a.pem": false,
	} {
		said := tell(t, account(), webtest.Receipt{}, time.Now())
		change(t, said, "SigningCertURL", address) // no part of what is signed
		if _, err := c.Hear(said); good != (err == nil) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestMessagesOutOfTimeAreStale(t *testing.T) {
	t.Parallel()
	c := open(t, settings(nil))
	for age, good := range map[time.Duration]bool{61 * time.Minute: false, 59 * time.Minute: true, -6 * time.Minute: false, -4 * time.Minute: true} {
		heard, err := c.Hear(tell(t, account(), webtest.Receipt{}, time.Now().Add(age)))
		if good != (err == nil) || !good && (!errors.Is(err, provider.ErrStale) || heard.Receipts != nil) {
			t.Errorf("%s old: %v", age, err)
		}
	}
}

func TestSecretsInTheURLVerifyWithoutOrBesideCertificates(t *testing.T) {
	t.Parallel()
	cfg := account()
	cfg.Key, cfg.Secret = nil, secret
	only := map[string]any{"sns_certificate_files": nil, "callback_secret_files": []any{"old", "secret"}}
	said := tell(t, cfg, webtest.Receipt{State: provider.Delivered}, time.Now())
	if heard, err := open(t, settings(only)).Hear(said); err != nil || len(heard.Receipts) != 1 {
		t.Errorf("the secret alone: %v", err)
	}
	if _, err := open(t, settings(map[string]any{"callback_secret_files": "secret"})).Hear(said); !errors.Is(err, provider.ErrForged) {
		t.Errorf("the secret without the signature that is asked for too: %v", err)
	}
	said.URL = callback + "?secret=" + secret + "x"
	if _, err := open(t, settings(only)).Hear(said); !errors.Is(err, provider.ErrForged) {
		t.Errorf("another secret: %v", err)
	}
	raw := &provider.Callback{
		Method: "POST", URL: callback + "?secret=" + secret, At: time.Now(), Body: []byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`),
		Header: map[string][]string{"X-Amz-Sns-Rawdelivery": {"true"}, "X-Amz-Sns-Topic-Arn": {topic}},
	}
	if heard, err := open(t, settings(only)).Hear(raw); err != nil || len(heard.Receipts) != 1 {
		t.Errorf("raw delivery: %v", err)
	}
	raw.Header["X-Amz-Sns-Topic-Arn"] = []string{"arn:aws:sns:eu-central-1:999999999999:other"}
	if _, err := open(t, settings(only)).Hear(raw); !errors.Is(err, provider.ErrForged) {
		t.Errorf("raw delivery of another topic: %v", err)
	}
}

func TestWithoutVerificationNobodyIsBelieved(t *testing.T) {
	t.Parallel()
	c := open(t, settings(map[string]any{"sns_certificate_files": nil}))
	if _, err := c.Hear(tell(t, account(), webtest.Receipt{}, time.Now())); !errors.Is(err, provider.ErrForged) || c.Capabilities().Receipts {
		t.Errorf("error %v", err)
	}
}

func TestGenuineMessagesThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	cfg := account()
	for _, event := range []any{"no object", map[string]any{"eventType": "TEXT_DELIVERED"}} {
		request, err := cfg.Publish(callback, event)
		if err != nil {
			t.Fatal(err)
		}
		if heard, err := open(t, settings(nil)).Hear(asCallback(t, request, time.Now())); !errors.Is(err, provider.ErrMalformed) || heard.Receipts != nil {
			t.Errorf("%v: %v", event, err)
		}
	}
	request, err := cfg.Publish(callback, map[string]any{"eventType": "VOICE_ANSWERED", "messageId": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if heard, err := open(t, settings(nil)).Hear(asCallback(t, request, time.Now())); err != nil || heard.Receipts != nil || heard.Inbound != nil {
		t.Errorf("an event of another kind: %+v, %v", heard, err)
	}
}

func FuzzHear(f *testing.F) {
	genuine := tell(f, account(), webtest.Receipt{State: provider.Delivered}, time.Now())
	f.Add(genuine.URL, "", genuine.Body)
	f.Add(callback+"?secret="+secret, "true", []byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`))
	strict := open(f, settings(map[string]any{"sns_certificate_files": "other certificate"}))
	believing := open(f, settings(map[string]any{"sns_certificate_files": nil, "sns_topics": nil, "callback_secret_files": "secret"}))
	f.Fuzz(func(t *testing.T, address, raw string, body []byte) {
		c := &provider.Callback{Method: "POST", URL: address, Header: map[string][]string{"X-Amz-Sns-Rawdelivery": {raw}}, Body: body, At: time.Now()}
		if heard, err := strict.Hear(c); !errors.Is(err, provider.ErrForged) || heard.Receipts != nil || heard.Inbound != nil {
			t.Errorf("believed what nobody signed: %v", err)
		}
		c.URL = callback + "?secret=" + secret
		heard, err := believing.Hear(c)
		if errors.Is(err, provider.ErrForged) {
			t.Errorf("a caller with the secret: %v", err)
		}
		for _, r := range heard.Receipts {
			if r.Reference == "" || len(r.Code) > 64 || bytes.ContainsAny([]byte(r.Code), "0123456789") {
				t.Error("a receipt without reference or with digits in its code")
			}
		}
	})
}
