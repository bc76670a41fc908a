package aws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/web/webtest"
)

func receiptCallback(t testing.TB, cfg awstest.Config, r webtest.Receipt, at time.Time) *provider.Callback {
	t.Helper()
	submit := &webtest.Submit{
		To: "+447700900123", Key: key, Reference: "ref-1", Callback: callback, At: time.Now(),
	}
	request, err := awstest.New(cfg).Receipt(submit, r)
	if err != nil {
		t.Fatal(err)
	}
	return webtest.MadeCallbackAt(t, request, at)
}

func TestEventsAreRead(t *testing.T) {
	t.Parallel()
	at := time.Now()
	older := account()
	older.Version1 = true
	for version, cfg := range map[string]awstest.Config{
		"version 1": older, "version 2": account(),
	} {
		c := open(t, channelSettings(nil))
		for said, want := range map[webtest.Receipt]provider.Receipt{
			{State: provider.Delivered}: {
				State: provider.Delivered, Code: "TEXT_DELIVERED",
			},
			{State: provider.Pending}: {
				State: provider.Pending, Code: "TEXT_SENT",
			},
			{State: provider.Delivered, Code: "TEXT_SUCCESSFUL"}: {
				State: provider.Pending, Code: "TEXT_SUCCESSFUL",
			},
			{State: provider.Undelivered}: {
				State: provider.Undelivered, Cause: provider.Absent, Code: "TEXT_UNREACHABLE",
			},
			// not final
			{State: provider.Pending, Code: "TEXT_UNREACHABLE"}: {
				State: provider.Pending, Code: "TEXT_UNREACHABLE",
			},
			{State: provider.Undelivered, Code: "TEXT_INVALID"}: {
				State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "TEXT_INVALID",
			},
			{State: provider.Undelivered, Code: "TEXT_INVALID_MESSAGE"}: {
				State: provider.Undelivered, Code: "TEXT_INVALID_MESSAGE",
			},
			{State: provider.Undelivered, Code: "TEXT_CARRIER_BLOCKED"}: {
				State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_CARRIER_BLOCKED",
			},
			{State: provider.Undelivered, Code: "TEXT_BLOCKED"}: {
				State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_BLOCKED",
			},
			{State: provider.Undelivered, Code: "TEXT_PROTECT_BLOCKED"}: {
				State: provider.Undelivered, Cause: provider.Blocked, Code: "TEXT_PROTECT_BLOCKED",
			},
			{State: provider.Undelivered, Code: "TEXT_CARRIER_UNREACHABLE"}: {
				State: provider.Undelivered, Cause: provider.NetworkError,
				Code: "TEXT_CARRIER_UNREACHABLE",
			},
			{State: provider.Undelivered, Code: "TEXT_SPAM"}: {
				State: provider.Undelivered, Cause: provider.Spam, Code: "TEXT_SPAM",
			},
			{State: provider.Undelivered, Code: "TEXT_TTL_EXPIRED"}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "TEXT_TTL_EXPIRED",
			},
			// no report arrived for three days
			{State: provider.Undelivered, Code: "TEXT_UNKNOWN"}: {
				State: provider.Pending, Code: "TEXT_UNKNOWN",
			},
			{State: provider.Undelivered, Code: "TEXT_SOMETHING_NEW"}: {
				State: provider.Pending, Code: "TEXT_SOMETHING_NEW",
			},
			{State: provider.Undelivered, Code: "TEXT_447700900123"}: {
				State: provider.Pending, Code: "other",
			},
		} {
			call := receiptCallback(t, cfg, said, at)
			content, err := c.ReadCallback(call)
			if err != nil || content.ReplayID == "" {
				t.Fatalf("%s: once %q, error %v", version, content.ReplayID, err)
			}
			want.Reference, want.Key = "ref-1", key
			webtest.CheckContent(t, c, call,
				provider.CallbackContent{
					ReplayID: content.ReplayID, Receipts: []provider.Receipt{want},
				})
		}
		webtest.CheckReplayID(t, c, receiptCallback(t, cfg, webtest.Receipt{}, at),
			receiptCallback(t, cfg, webtest.Receipt{}, at))
	}
}

func TestSuccessfulIsDeliveredOnlyWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	said := receiptCallback(t, account(), webtest.Receipt{State: provider.Delivered, Code: "TEXT_SUCCESSFUL"},
		time.Now())
	content, err := open(t, channelSettings(map[string]any{
		"successful": "delivered",
	})).ReadCallback(said)
	if err != nil || content.Receipts[0].State != provider.Delivered {
		t.Errorf("content %+v, error %v", content, err)
	}
}

func TestInboundMessagesAreRead(t *testing.T) {
	t.Parallel()
	in := provider.Inbound{
		Reference: "in-1", From: "+447700900123", To: "+447700900999", Text: "STOP", At: time.Now(),
	}
	request, err := awstest.New(account()).Inbound(callback, in)
	if err != nil {
		t.Fatal(err)
	}
	c, call := open(t, channelSettings(nil)), webtest.MadeCallbackAt(t, request, in.At)
	content, err := c.ReadCallback(call)
	if err != nil {
		t.Fatal(err)
	}
	webtest.CheckContent(t, c, call,
		provider.CallbackContent{ReplayID: content.ReplayID, Inbound: []provider.Inbound{in}})
}

// change rewrites a field of a signed SNS message.
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
	elsewhere, unsigned, otherKey := account(), account(), account()
	// signed by SNS, for another account
	elsewhere.Topic = "arn:aws:sns:eu-central-1:999999999999:sms-events"
	unsigned.Key = nil
	otherKey.Key = signers()[1].key
	strict := open(t, channelSettings(map[string]any{"sns_certificate_files": "certificate"}))
	webtest.CheckRefused(t, strict, provider.ErrForged, map[string]*provider.Callback{
		"another account's topic": receiptCallback(t, elsewhere, webtest.Receipt{}, time.Now()),
		"unsigned":                receiptCallback(t, unsigned, webtest.Receipt{}, time.Now()),
		"another key":             receiptCallback(t, otherKey, webtest.Receipt{}, time.Now()),
		"expired certificate": receiptCallback(t, account(), webtest.Receipt{},
			time.Now().Add(48*time.Hour)),
		"certificate of the future": receiptCallback(t, account(), webtest.Receipt{},
			time.Now().Add(-48*time.Hour)),
		"raw delivery": {
			Method: "POST", URL: callback, At: time.Now(),
			Body: []byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`),
			Header: map[string][]string{
				"X-Amz-Sns-Rawdelivery": {"true"}, "X-Amz-Sns-Topic-Arn": {homeTopic},
			},
		},
		"no JSON": {Method: "POST", URL: callback, At: time.Now()},
	})
	changes := webtest.Changes{}
	for field, value := range map[string]string{
		"Message": `{"eventType":"TEXT_DELIVERED","messageId":"x"}`, "MessageId": "x",
		"Timestamp": time.Now().UTC().Format(time.RFC3339), "Subject": "x",
		"TopicArn": homeTopic + "x", "Type": "SubscriptionConfirmation", "SignatureVersion": "1",
		"Signature":      "AAAA",
		"SigningCertURL": "https://sns.eu-central-1.amazonaws.com.evil.example/x.pem",
	} {
		changes["another "+field] = func(c *provider.Callback) { change(t, c, field, value) }
	}
	webtest.CheckTampered(t, open(t, channelSettings(nil)), func() *provider.Callback {
		return receiptCallback(t, account(), webtest.Receipt{State: provider.Undelivered}, time.Now())
	}, changes)
}

func TestCertificatesOfOtherHostsAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t, channelSettings(nil))
	for address, good := range map[string]bool{
		"https://sns.us-gov-west-1.amazonaws.com/a.pem":             true,
		"https://sns.cn-north-1.amazonaws.com.cn/a.pem":             true,
		"http://sns.eu-central-1.amazonaws.com/a.pem":               false,
		"https://sns.eu-central-1.amazonaws.com/a.txt":              false,
		"https://s3.amazonaws.com/bucket/a.pem":                     false,
		"https://snsxeu.amazonaws.com/a.pem":                        false,
		"https://sns.eu.amazonaws.com@evil.example/a.pem":           false,
		"https://evil.example/sns.eu-central-1.amazonaws.com/a.pem": false,
		"https://sns.eu-central-1.amazonaws.com:8443/a.pem":         false,
	} {
		said := receiptCallback(t, account(), webtest.Receipt{}, time.Now())
		change(t, said, "SigningCertURL", address) // not covered by the signature
		if _, err := c.ReadCallback(said); good != (err == nil) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestMessagesOutOfTimeAreStale(t *testing.T) {
	t.Parallel()
	webtest.CheckAgeLimits(t, open(t, channelSettings(nil)),
		func(age time.Duration) *provider.Callback {
			return receiptCallback(t, account(), webtest.Receipt{}, time.Now().Add(age))
		}, time.Hour+5*time.Minute, 5*time.Minute)
}

func TestEitherOfTwoSecretsInTheURLVerifies(t *testing.T) {
	t.Parallel()
	cfg := account()
	cfg.Key, cfg.Secret = nil, secret
	webtest.CheckSecrets(t, func(names ...string) provider.CallbackReader {
		files := []any{}
		for _, name := range names {
			files = append(files, name)
		}
		return open(t, channelSettings(map[string]any{
			"sns_certificate_files": nil, "callback_secret_files": files,
		}))
	}, receiptCallback(t, cfg, webtest.Receipt{State: provider.Delivered}, time.Now()), "secret", "old")
}

func TestSecretsInTheURLVerifyWithoutOrBesideCertificates(t *testing.T) {
	t.Parallel()
	cfg := account()
	cfg.Key, cfg.Secret = nil, secret
	only := map[string]any{
		"sns_certificate_files": nil, "callback_secret_files": []any{"old", "secret"},
	}
	said := receiptCallback(t, cfg, webtest.Receipt{State: provider.Delivered}, time.Now())
	if content, err := open(t, channelSettings(only)).ReadCallback(said); err != nil ||
		len(content.Receipts) != 1 {
		t.Errorf("the secret alone: %v", err)
	}
	if _, err := open(t, channelSettings(map[string]any{
		"callback_secret_files": "secret",
	})).ReadCallback(said); !errors.Is(err, provider.ErrForged) {
		t.Errorf("the secret without the required signature: %v", err)
	}
	said.URL = callback + "?secret=" + secret + "x"
	if _, err := open(t, channelSettings(only)).ReadCallback(said); !errors.Is(err,
		provider.ErrForged) {
		t.Errorf("another secret: %v", err)
	}
	raw := &provider.Callback{
		Method: "POST", URL: callback + "?secret=" + secret, At: time.Now(),
		Body: []byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`),
		Header: map[string][]string{
			"X-Amz-Sns-Rawdelivery": {"true"}, "X-Amz-Sns-Topic-Arn": {homeTopic},
		},
	}
	if content, err := open(t, channelSettings(only)).ReadCallback(raw); err != nil ||
		len(content.Receipts) != 1 {
		t.Errorf("raw delivery: %v", err)
	}
	raw.Header["X-Amz-Sns-Topic-Arn"] = []string{"arn:aws:sns:eu-central-1:999999999999:other"}
	if _, err := open(t, channelSettings(only)).ReadCallback(raw); !errors.Is(err,
		provider.ErrForged) {
		t.Errorf("raw delivery of another topic: %v", err)
	}
}

func TestWithoutVerificationEveryCallbackIsForged(t *testing.T) {
	t.Parallel()
	c := open(t, channelSettings(map[string]any{"sns_certificate_files": nil}))
	if _, err := c.ReadCallback(receiptCallback(t, account(), webtest.Receipt{}, time.Now())); !errors.Is(err,
		provider.ErrForged) || c.Capabilities().Receipts {
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
		webtest.CheckRefused(t, open(t, channelSettings(nil)), provider.ErrMalformed,
			map[string]*provider.Callback{
				fmt.Sprint(event): webtest.MadeCallbackAt(t, request, time.Now()),
			})
	}
	request, err := cfg.Publish(callback,
		map[string]any{"eventType": "VOICE_ANSWERED", "messageId": "x"})
	if err != nil {
		t.Fatal(err)
	}
	webtest.CheckIgnored(t, open(t, channelSettings(nil)),
		map[string]*provider.Callback{
			"an event of another kind": webtest.MadeCallbackAt(t, request, time.Now()),
		})
}

// TestASubjectCannotBeCutIntoTheMessageId: SNS signs names and values line by line, and the subject
// is optional. If part of the id could become a subject, a repeated message would count as a new
// one.
func TestASubjectCannotBeCutIntoTheMessageId(t *testing.T) {
	t.Parallel()
	cfg := account()
	request, err := cfg.PublishAbout(callback, "a subject",
		map[string]any{"eventType": "VOICE_ANSWERED", "messageId": "x"})
	call := webtest.MadeCallback(t, request, err)
	call.At = time.Now()
	c := open(t, channelSettings(nil))
	if _, err := c.ReadCallback(call); err != nil {
		t.Fatal(err)
	}
	var fields map[string]string
	if err := json.Unmarshal(call.Body, &fields); err != nil {
		t.Fatal(err)
	}
	fields["MessageId"] += "\nSubject\n" + fields["Subject"]
	delete(fields, "Subject")
	if call.Body, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	webtest.CheckRefused(t, c, provider.ErrMalformed,
		map[string]*provider.Callback{"cut anew": call})
}

func FuzzReadCallback(f *testing.F) {
	genuine := receiptCallback(f, account(), webtest.Receipt{State: provider.Delivered}, time.Now())
	f.Add(genuine.URL, "", genuine.Body)
	f.Add(callback+"?secret="+secret, "true",
		[]byte(`{"eventType":"TEXT_DELIVERED","messageId":"ref-1"}`))
	strict := open(f, channelSettings(map[string]any{"sns_certificate_files": "other certificate"}))
	accepting := open(
		f, channelSettings(map[string]any{
			"sns_certificate_files": nil, "sns_topics": nil, "callback_secret_files": "secret",
		}))
	f.Fuzz(func(t *testing.T, address, raw string, body []byte) {
		c := &provider.Callback{
			Method: "POST", URL: address,
			Header: map[string][]string{"X-Amz-Sns-Rawdelivery": {raw}}, Body: body, At: time.Now(),
		}
		webtest.CheckForged(t, strict, c)
		c.URL = callback + "?secret=" + secret
		content, err := accepting.ReadCallback(c)
		if errors.Is(err, provider.ErrForged) {
			t.Errorf("a caller with the secret: %v", err)
		}
		for _, r := range content.Receipts {
			if r.Reference == "" || len(r.Code) > 64 ||
				bytes.ContainsAny([]byte(r.Code), "0123456789") {
				t.Error("a receipt without reference or with digits in its code")
			}
		}
	})
}
