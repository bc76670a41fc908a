package twilio

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestValuesOfARepeatedFieldAreSignedInTheirOrderAndOnce, as in Twilio's own libraries. The
// signature was made with another tool:
//
//	printf '%s' 'https://mycompany.com/myapp.php?foo=1&bar=2Digits1MediaaMediab' | openssl dgst -sha1 -hmac 12345 -binary | base64
func TestValuesOfARepeatedFieldAreSignedInTheirOrderAndOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		// genuine, but it names no message
		"Media=a&Media=b&Digits=1":         provider.ErrMalformed,
		"Media=b&Digits=1&Media=a":         provider.ErrMalformed,
		"Media=b&Media=a&Media=b&Digits=1": provider.ErrMalformed,
		"Media=ab&Digits=1":                provider.ErrForged,
		"Media=a&Digits=1":                 provider.ErrForged,
	} {
		_, err := channelWith(t)("12345").ReadCallback(&provider.Callback{
			Method: http.MethodPost, URL: "https://mycompany.com/myapp.php?foo=1&bar=2",
			Body: []byte(body),
			Header: map[string][]string{
				"X-Twilio-Signature": {"CrXYiiF5QXoaDNgftH1qrNL/2ps="},
				"Content-Type":       {"application/x-www-form-urlencoded"},
			},
		})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

// TestSignaturesOfTheDocumentationAreGenuine uses the published examples of Twilio's own libraries.
// They name no message, so a genuine one is malformed here.
func TestSignaturesOfTheDocumentationAreGenuine(t *testing.T) {
	t.Parallel()
	form := "Digits=1234&CallSid=CA1234567890ABCDE&To=%2B18005551212&Caller=%2B14158675309&From=%2B14158675309"
	digest := "&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
	json := `{"property": "value", "boolean": true}`
	for name, c := range map[string]struct {
		url, body, kind, signature string
		want                       error
	}{
		"form": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", form,
			"application/x-www-form-urlencoded", "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
			provider.ErrMalformed,
		},
		"port left out": {
			"https://mycompany.com:1234/myapp.php?foo=1&bar=2", form,
			"application/x-www-form-urlencoded", "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
			provider.ErrMalformed,
		},
		"port put in": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", form,
			"application/x-www-form-urlencoded", "kvajT1Ptam85bY51eRf/AJRuM3w=",
			provider.ErrMalformed,
		},
		"port over http": {
			"http://mycompany.com:1234/myapp.php?foo=1&bar=2", form,
			"application/x-www-form-urlencoded", "Zmvh+3yNM1Phv2jhDCwEM3q5ebU=",
			provider.ErrMalformed,
		},
		"JSON": {
			"https://mycompany.com/myapp.php?foo=1&bar=2" + digest, json, "application/json",
			"a9nBmqA0ju/hNViExpshrM61xv4=", provider.ErrMalformed,
		},
		"other path": {
			"https://mycompany.com/myapp.php?foo=1&bar=3", form,
			"application/x-www-form-urlencoded", "RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
		"other form": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", form + "1",
			"application/x-www-form-urlencoded", "RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
		"other JSON": {
			"https://mycompany.com/myapp.php?foo=1&bar=2" + digest, json + " ", "application/json",
			"a9nBmqA0ju/hNViExpshrM61xv4=", provider.ErrForged,
		},
		"JSON without sum": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", json, "application/json",
			"RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
		"no signature": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", form,
			"application/x-www-form-urlencoded", "", provider.ErrForged,
		},
		"form that is none": {
			"https://mycompany.com/myapp.php?foo=1&bar=2", "%zz",
			"application/x-www-form-urlencoded", "RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
		"URL that is none": {
			"https://mycompany.com/%zz", form, "application/x-www-form-urlencoded",
			"RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
		"URL without scheme": {
			"mycompany.com", form, "application/x-www-form-urlencoded",
			"RSOYDt4T1cUTdK1PDd93/VVr8B8=", provider.ErrForged,
		},
	} {
		_, err := channelWith(t)("other", "12345").ReadCallback(&provider.Callback{
			Method: http.MethodPost, URL: c.url, Body: []byte(c.body),
			Header: map[string][]string{
				"X-Twilio-Signature": {c.signature}, "Content-Type": {c.kind},
			},
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := channelWith(t)().ReadCallback(&provider.Callback{
		URL: "https://mycompany.com/",
	}); !errors.Is(err, provider.ErrForged) {
		t.Errorf("without a token: %v", err)
	}
}

// sm1 is the SID of a message.
var sm1 = twiliotest.Reference(1)

// signed returns a callback with a form.
func signed(form url.Values) *provider.Callback {
	return signedAt(callback+"?key="+webtest.Key, form)
}

func signedAt(address string, form url.Values) *provider.Callback {
	return &provider.Callback{
		Method: http.MethodPost, URL: address, Body: []byte(form.Encode()), At: time.Now(),
		Header: map[string][]string{
			"X-Twilio-Signature": {twiliotest.Sign(token, address, form)},
			"Content-Type":       {"application/x-www-form-urlencoded"},
		},
	}
}

func TestStatusesMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	about := provider.Receipt{Reference: sm1, Key: webtest.Key}
	webtest.CheckStatuses(t, channelWith(t)(token), about,
		func(status, code string) *provider.Callback {
			form := url.Values{
				"MessageSid": {sm1}, "MessageStatus": {status}, "SmsStatus": {status},
				"To": {"+447700900123"},
			}
			if code != "" {
				form.Set("ErrorCode", code)
			}
			return signed(form)
		}, map[[2]string]provider.Receipt{
			{"accepted", ""}:            {State: provider.Pending, Code: "accepted"},
			{"queued", ""}:              {State: provider.Pending, Code: "queued"},
			{"sending", ""}:             {State: provider.Pending, Code: "sending"},
			{"sent", ""}:                {State: provider.Pending, Code: "sent"},
			{"scheduled", ""}:           {State: provider.Pending, Code: "scheduled"},
			{"partially_delivered", ""}: {State: provider.Pending, Code: "partially_delivered"},
			{"something_new", ""}:       {State: provider.Pending, Code: "something_new"},
			{"delivered", ""}:           {State: provider.Delivered, Code: "delivered"},
			{"read", ""}:                {State: provider.Delivered, Code: "read"},
			{"canceled", ""}: {
				State: provider.Undelivered, Cause: provider.Deleted, Code: "canceled",
			},
			{"failed", "30007"}: {
				State: provider.Undelivered, Cause: provider.Spam, Code: "failed/30007",
			},
			{"failed", "21610"}: {
				State: provider.Undelivered, Cause: provider.OptedOut, Code: "failed/21610",
			},
			{"undelivered", "30003"}: {
				State: provider.Undelivered, Cause: provider.Absent, Code: "undelivered/30003",
			},
			{"undelivered", "30036"}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "undelivered/30036",
			},
			{"undelivered", "39999"}: {State: provider.Undelivered, Code: "undelivered/39999"},
		})
}

func TestReceiptsInJSONAreReadAsThoseInForms(t *testing.T) {
	t.Parallel()
	body := []byte(
		`{"MessageSid":"` + sm1 +
			`","MessageStatus":"failed","ErrorCode":30005,"ErrorMessage":null}`)
	sum := sha256.Sum256(body)
	address := callback + "?key=" + webtest.Key + "&bodySHA256=" + hex.EncodeToString(sum[:])
	content, err := channelWith(t)(token).ReadCallback(&provider.Callback{
		URL: address, Body: body,
		Header: map[string][]string{
			"X-Twilio-Signature": {twiliotest.Sign(token, address, nil)},
			"Content-Type":       {"application/json; charset=utf-8"},
		},
	})
	want := []provider.Receipt{
		{
			Reference: sm1, Key: webtest.Key, State: provider.Undelivered,
			Cause: provider.UnknownNumber, Code: "failed/30005",
		},
	}
	if diff := cmp.Diff(want, content.Receipts); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestEmptyTwiMLAnswersInboundMessages(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	in := provider.Inbound{
		Reference: twiliotest.Reference(9), From: "+447700900123", To: "60777", Text: "null",
	}
	r, err := newProtocol().Inbound(callback, in)
	call := webtest.MadeCallback(t, r, err)
	webtest.CheckContent(t, c, call, provider.CallbackContent{
		Inbound: []provider.Inbound{in}, ReplayID: call.Get("X-Twilio-Signature"),
		Answer:     `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`,
		AnswerType: "text/xml; charset=utf-8",
	})
	in.From = "whatsapp:+447700900123"
	r, err = newProtocol().Inbound(callback, in)
	webtest.CheckIgnored(t, c,
		map[string]*provider.Callback{"of another network": webtest.MadeCallback(t, r, err)})
}

func TestForgedCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	genuine := func() *provider.Callback {
		return signed(url.Values{
			"MessageSid": {sm1}, "MessageStatus": {"undelivered"}, "ErrorCode": {"30003"},
		})
	}
	webtest.CheckTampered(t, channelWith(t)(token), genuine, webtest.Changes{
		"other status": func(c *provider.Callback) {
			c.Body = []byte("ErrorCode=30003&MessageSid=" + sm1 + "&MessageStatus=delivered")
		},
		"other submission": func(c *provider.Callback) {
			c.URL = web.WithKey(callback, "ffffffffffffffffffffffffffffffff")
		},
		"field more": func(c *provider.Callback) { c.Body = append(c.Body, "&A=1"...) },
		"second value": func(c *provider.Callback) {
			c.Body = append(c.Body, "&MessageSid=SM2"...)
		},
		"other signature": func(c *provider.Callback) {
			c.Header["X-Twilio-Signature"] = []string{"AAAAAAAAAAAAAAAAAAAAAAAAAAA="}
		},
		"empty signature":   func(c *provider.Callback) { c.Header["X-Twilio-Signature"] = nil },
		"longer signature":  func(c *provider.Callback) { c.Header["X-Twilio-Signature"][0] += "=" },
		"digest of nothing": func(c *provider.Callback) { c.URL += "&bodySHA256=" },
	})
	webtest.CheckSecrets(t, channelWith(t), genuine(), token, "another")
}

func TestCallbacksHaveReplayIDs(t *testing.T) {
	t.Parallel()
	said := func(status string) *provider.Callback {
		return signed(url.Values{"MessageSid": {sm1}, "MessageStatus": {status}})
	}
	webtest.CheckReplayID(t, channelWith(t)(token), said("sent"), said("delivered"))
}

func TestSignedCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	webtest.CheckRefused(t, c, provider.ErrMalformed, map[string]*provider.Callback{
		"no message": signed(url.Values{"MessageStatus": {"sent"}}),
		"long SID": signed(url.Values{
			"MessageSid": {sm1 + "0"}, "MessageStatus": {"sent"},
		}),
		"SID of a call": signed(
			url.Values{"MessageSid": {"CA" + sm1[2:]}, "MessageStatus": {"sent"}}),
		"two SIDs": signed(url.Values{
			"MessageSid": {sm1}, "SmsSid": {twiliotest.Reference(2)}, "MessageStatus": {"sent"},
		}),
		"code of letters": signed(url.Values{
			"MessageSid": {sm1}, "MessageStatus": {"failed"}, "ErrorCode": {"+447700900123"},
		}),
		"status of words": signed(url.Values{
			"MessageSid": {sm1}, "MessageStatus": {"sent today"},
		}),
		"name with a space": signed(
			url.Values{"MessageSid": {sm1}, "MessageStatus": {"sent"}, "Some name": {""}}),
		"no sender": signed(url.Values{
			"MessageSid": {sm1}, "SmsStatus": {"received"}, "Body": {"STOP"}, "To": {"60777"},
		}),
		"other query": signedAt(callback+"?key="+webtest.Key+"&more=1",
			url.Values{"MessageSid": {sm1}, "MessageStatus": {"sent"}}),
	})
	webtest.CheckIgnored(t, c,
		map[string]*provider.Callback{
			"other": signed(url.Values{"MessageSid": {sm1}, "EventType": {"other"}}),
		})
}

// FuzzReadCallback signs every input, and then changes it. Reading the signed input does not panic;
// the changed one yields nothing.
func FuzzReadCallback(f *testing.F) {
	f.Add("MessageSid="+sm1+"&MessageStatus=delivered", "MessageSid="+sm1+"&MessageStatus=failed",
		"application/x-www-form-urlencoded")
	f.Add("MessageSid="+sm1+"&SmsStatus=received&Body=STOP", "",
		"application/x-www-form-urlencoded")
	f.Add(`{"MessageSid":"`+sm1+`","MessageStatus":"sent"}`, "{}", "application/json")
	c := channelWith(f)(token)
	f.Fuzz(func(t *testing.T, body, other, kind string) {
		sum := sha256.Sum256([]byte(body))
		address := callback + "?bodySHA256=" + hex.EncodeToString(sum[:])
		call := &provider.Callback{
			URL: address, Body: []byte(body), At: time.Now(),
			Header: map[string][]string{
				"X-Twilio-Signature": {twiliotest.Sign(token, address, nil)},
				"Content-Type":       {kind},
			},
		}
		content, err := c.ReadCallback(call)
		if errors.Is(err, provider.ErrForged) {
			t.Error("a genuine callback was refused as forged")
		}
		webtest.CheckBounded(t, content, err)
		if call.Body = []byte(other); other != body {
			webtest.CheckForged(t, c, call)
		}
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		for name := range form {
			form[name] = form[name][:1]
		}
		if _, err := c.ReadCallback(signed(form)); errors.Is(err, provider.ErrForged) {
			t.Error("a genuine form was refused as forged")
		}
	})
}

// TestSharedKeysSignBySHA256, or by SHA-1 if the account's webhook setting says so. The signature
// was made with another tool:
//
//	printf '%s' "$address$parameters" | openssl dgst -sha256 -hmac shared-key-secret -binary | base64
func TestSharedKeysSignBySHA256(t *testing.T) {
	t.Parallel()
	form := url.Values{"MessageSid": {sm1}, "MessageStatus": {"delivered"}}
	address := callback + "?key=" + webtest.Key
	listen := func(tokens, shared []string) provider.CallbackReader {
		cfg := config(webtest.LocalConfig(t, "https://api.twilio.com"))
		cfg.Callback, cfg.AuthTokens, cfg.SharedKeys = callback, tokens, shared
		c := New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
	call := func(signature string) *provider.Callback {
		return &provider.Callback{
			Method: http.MethodPost, URL: address, Body: []byte(form.Encode()),
			Header: map[string][]string{"X-Twilio-Signature": {signature}},
		}
	}
	const bySHA256 = "pMbpHo2Z6B3FighEUjulPOlEZUTozO0jowNxd5tzwrE="
	for name, c := range map[string]struct {
		listener  provider.CallbackReader
		signature string
		want      error
	}{
		"SHA-256 under the shared key": {
			listen(nil, []string{"older", "shared-key-secret"}), bySHA256, nil,
		},
		"SHA-1 under the shared key": {
			listen([]string{token}, []string{"shared-key-secret"}),
			twiliotest.Sign("shared-key-secret", address, form), nil,
		},
		"SHA-1 under the token beside": {
			listen([]string{token}, []string{"shared-key-secret"}),
			twiliotest.Sign(token, address, form), nil,
		},
		"SHA-256 under another key": {
			listen([]string{token}, []string{"another"}), bySHA256, provider.ErrForged,
		},
		"SHA-256 under the token alone": {
			listen([]string{"shared-key-secret"}, nil), bySHA256, provider.ErrForged,
		},
	} {
		content, err := c.listener.ReadCallback(call(c.signature))
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || len(content.Receipts) != 1) {
			t.Errorf("%s: %+v, %v", name, content, err)
		}
	}
}
