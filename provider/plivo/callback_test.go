package plivo

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestSignaturesOfTheDocumentationAreGenuine uses the published examples of Plivo's own libraries.
// They name no message, so a genuine one is malformed here.
func TestSignaturesOfTheDocumentationAreGenuine(t *testing.T) {
	t.Parallel()
	const (
		voiceToken = "Y2Q2ZDgxZmY5YWRiOTI5YmQ1Njg0MTAxZWIyOTc4"
		voiceURL   = "https://plivobin.non-prod.plivops.com/api/v1/validate_signature03.xml"
		voiceNonce = "31627761595286130198"
	)
	form := url.Values{
		"Direction": {"outbound"}, "From": {"19792014278"},
		"ALegUUID":   {"3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36"},
		"CallStatus": {"in-progress"}, "BillRate": {"0.002"},
		"ParentAuthID": {"MANWVLYTK4ZWU1YTY4QA"},
		"To": {
			"sip:PlivoSignature382029104058171078704104@phone-qa.voice.plivodev.com",
		},
		"ALegRequestUUID": {"3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36"},
		"CallUUID":        {"3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36"},
		"RequestUUID":     {"3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36"},
		"SIP-H-To": {
			"<sip:PlivoSignature382029104058171078704104@52.9.11.55;transport=udp>;tag=1",
		},
		"SessionStart": {"2020-04-08 11:34:33.238707"}, "Event": {"StartApp"},
	}.Encode()
	for name, c := range map[string]struct {
		url, body string
		header    map[string][]string
		want      error
	}{
		"V3 without query": {
			voiceURL, form, v3("iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=", voiceNonce),
			provider.ErrMalformed,
		},
		"V3 with query": {
			voiceURL + "/?a=b&c=d", form,
			v3("k7Pusd4OxCIjR5IfA9iedDNu/h/gbdYqdzG/MiYtd1c=", voiceNonce), provider.ErrMalformed,
		},
		"V3 in GET": {
			voiceURL + "?" + form, "",
			v3("i/MQsaQSAd6fiKhOh2qeeeLHZ9faldADSb3/7+Akfbc=", voiceNonce), provider.ErrMalformed,
		},
		"V3 among others": {
			voiceURL, form, v3("AAAA, iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=", voiceNonce),
			provider.ErrMalformed,
		},
		"V3 other nonce": {
			voiceURL, form, v3("iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=", "1"),
			provider.ErrForged,
		},
		"V3 no nonce": {
			voiceURL, form, v3("iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=", ""),
			provider.ErrForged,
		},
		"V3 other query": {
			voiceURL + "/?a=b&c=e", form,
			v3("k7Pusd4OxCIjR5IfA9iedDNu/h/gbdYqdzG/MiYtd1c=", voiceNonce), provider.ErrForged,
		},
		"V2": {
			"https://answer.url", form, v2("ehV3IKhLysWBxC1sy8INm0qGoQYdYsHwuoKjsX7FsXc=", "12345"),
			provider.ErrMalformed,
		},
		"V2 other nonce": {
			"https://answer.url", form, v2("ehV3IKhLysWBxC1sy8INm0qGoQYdYsHwuoKjsX7FsXc=", "12346"),
			provider.ErrForged,
		},
		"V2 other host": {
			"https://answer.org", form, v2("ehV3IKhLysWBxC1sy8INm0qGoQYdYsHwuoKjsX7FsXc=", "12345"),
			provider.ErrForged,
		},
		"nothing": {"https://answer.url", form, nil, provider.ErrForged},
		"broken URL": {
			"https://answer.url/%zz", form,
			v2("ehV3IKhLysWBxC1sy8INm0qGoQYdYsHwuoKjsX7FsXc=", "12345"), provider.ErrForged,
		},
	} {
		_, err := channelWith(t)("my_auth_token", voiceToken).ReadCallback(
			&provider.Callback{URL: c.url, Body: []byte(c.body), Header: c.header})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func v3(signature, nonce string) map[string][]string {
	return map[string][]string{
		"X-Plivo-Signature-V3": {signature}, "X-Plivo-Signature-V3-Nonce": {nonce},
	}
}

func v2(signature, nonce string) map[string][]string {
	return map[string][]string{
		"X-Plivo-Signature-V2": {signature}, "X-Plivo-Signature-V2-Nonce": {nonce},
	}
}

// u1 is the id of a message.
var u1 = plivotest.Reference(1)

// signed returns a callback with a form, under both signatures.
func signed(form url.Values) *provider.Callback {
	return signedAt(web.WithKey(callback, webtest.Key), form)
}

func signedAt(address string, form url.Values) *provider.Callback {
	c := &provider.Callback{
		Method: http.MethodPost, URL: address, Body: []byte(form.Encode()), At: time.Now(),
		Header: v3(plivotest.SignV3(token, address, "n-1", form), "n-1"),
	}
	c.Header["X-Plivo-Signature-V2"] = []string{plivotest.SignV2(token, address, "n-1")}
	c.Header["X-Plivo-Signature-V2-Nonce"] = []string{"n-1"}
	return c
}

func TestStatusesMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	about := provider.Receipt{Reference: u1, Key: webtest.Key}
	webtest.CheckStatuses(t, channelWith(t)(token), about,
		func(status, code string) *provider.Callback {
			return signed(url.Values{
				"MessageUUID": {u1}, "Status": {status}, "ErrorCode": {code},
				"To": {"447700900123"},
			})
		}, map[[2]string]provider.Receipt{
			{"queued", ""}:        {State: provider.Pending, Code: "queued"},
			{"sent", ""}:          {State: provider.Pending, Code: "sent"},
			{"something_new", ""}: {State: provider.Pending, Code: "something_new"},
			{"delivered", "000"}:  {State: provider.Delivered, Code: "delivered"},
			{"read", ""}:          {State: provider.Delivered, Code: "read"},
			{"failed", "420"}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "failed/420",
			},
			{"failed", "900"}: {
				State: provider.Undelivered, Cause: provider.NoCredit, Code: "failed/900",
			},
			{"rejected", "10"}: {State: provider.Undelivered, Code: "rejected/10"},
			{"undelivered", "80"}: {
				State: provider.Undelivered, Cause: provider.Absent, Code: "undelivered/80",
			},
			{"undelivered", "200"}: {
				State: provider.Undelivered, Cause: provider.OptedOut, Code: "undelivered/200",
			},
			{"undelivered", "9999"}: {State: provider.Undelivered, Code: "undelivered/9999"},
		})
}

func TestTheNonceIsTheReplayID(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	call := signed(url.Values{"MessageUUID": {u1}, "Status": {"queued"}, "ErrorCode": {""}})
	webtest.CheckContent(t, c, call,
		provider.CallbackContent{ReplayID: "n-1", Receipts: []provider.Receipt{
			{Reference: u1, Key: webtest.Key, State: provider.Pending, Code: "queued"},
		}})
	form := url.Values{"MessageUUID": {u1}, "Status": {"sent"}}
	another := signed(form)
	another.Header = v3(plivotest.SignV3(token, another.URL, "n-2", form), "n-2")
	webtest.CheckReplayID(t, c, call, another)
}

// TestForgedCallbacksSayNothing: they have genuine V2 signatures, which is not enough.
func TestForgedCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	genuine := func() *provider.Callback {
		return signed(
			url.Values{"MessageUUID": {u1}, "Status": {"undelivered"}, "ErrorCode": {"80"}})
	}
	webtest.CheckTampered(t, channelWith(t)(token), genuine, webtest.Changes{
		"other status": func(c *provider.Callback) {
			c.Body = []byte("MessageUUID=" + u1 + "&Status=delivered&ErrorCode=80")
		},
		"other submission": func(c *provider.Callback) {
			c.URL = web.WithKey(callback, "ffffffffffffffffffffffffffffffff")
		},
		"field more": func(c *provider.Callback) { c.Body = append(c.Body, "&A=1"...) },
		"other nonce": func(c *provider.Callback) {
			c.Header["X-Plivo-Signature-V3-Nonce"] = []string{"n-2"}
		},
		"many signatures": func(c *provider.Callback) {
			c.Header["X-Plivo-Signature-V3"][0] += ",1,2,3,4,5,6,7,8"
		},
	})
	webtest.CheckSecrets(t, channelWith(t), genuine(), token, "another")
}

func TestTheMainAccountSignsForASubaccount(t *testing.T) {
	t.Parallel()
	main := signed(url.Values{"MessageUUID": {u1}, "Status": {"undelivered"}, "ErrorCode": {"80"}})
	main.Header["X-Plivo-Signature-Ma-V3"] = main.Header["X-Plivo-Signature-V3"]
	main.Header["X-Plivo-Signature-V3"] = []string{"of the subaccount"}
	cfg := config(webtest.LocalConfig(t, "https://api.plivo.com/v1"))
	cfg.Callback, cfg.AuthTokens, cfg.MainTokens = callback, []string{"subaccount"}, []string{token}
	sub := New(cfg)
	t.Cleanup(func() { _ = sub.Close(t.Context()) })
	if _, err := sub.ReadCallback(main); err != nil {
		t.Errorf("the main account's signature: %v", err)
	}
}

// withoutV3 removes the V3 signature of a callback.
func withoutV3(c *provider.Callback) *provider.Callback {
	delete(c.Header, "X-Plivo-Signature-V3")
	delete(c.Header, "X-Plivo-Signature-V3-Nonce")
	return c
}

// TestUnderSignatureV2TheProofSaysWhatCounts removes the V3 signature of a genuine callback, and
// changes what V2 does not cover: the form and the query.
func TestUnderSignatureV2TheProofSaysWhatCounts(t *testing.T) {
	t.Parallel()
	c := channelWith(t)("the new one", token)
	ofKey := callback + "?key=" + webtest.Key + "&proof=" + proofOfKey
	ofInbound := callback + "?proof=" + proofOfInbound
	about := func(uuid string) url.Values {
		return url.Values{"MessageUUID": {uuid}, "Status": {"delivered"}}
	}
	stop := url.Values{
		"MessageUUID": {u1}, "From": {"447700900123"}, "To": {"60777"}, "Text": {"STOP"},
	}
	webtest.CheckRefused(t, c, provider.ErrForged, map[string]*provider.Callback{
		"receipt without proof":                      withoutV3(signed(about(u1))),
		"receipt without key":                        withoutV3(signedAt(callback, about(u1))),
		"receipt at the address of inbound messages": withoutV3(signedAt(ofInbound, about(u1))),
		"receipt of another message": withoutV3(signedAt(
			strings.Replace(ofKey, webtest.Key, strings.Repeat("f", 32), 1), about(u1))),
		"inbound message without proof":             withoutV3(signedAt(callback, stop)),
		"inbound message at the address of another": withoutV3(signedAt(ofKey, stop)),
	})
	for name, uuid := range map[string]string{"its own": u1, "another": plivotest.Reference(2)} {
		content, err := c.ReadCallback(withoutV3(signedAt(ofKey, about(uuid))))
		if err != nil || len(content.Receipts) != 1 || content.Receipts[0].Reference != "" ||
			content.Receipts[0].Key != webtest.Key || content.ReplayID != "V2 n-1" {
			t.Errorf("%s: %+v, %v", name, content, err)
		}
	}
	content, err := c.ReadCallback(withoutV3(signedAt(ofInbound, stop)))
	if err != nil || len(content.Inbound) != 1 || len(content.Receipts) > 0 {
		t.Errorf("%+v, %v", content, err)
	}
}

func TestInboundMessagesHaveInternationalNumbers(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	for from, want := range map[string]string{
		"447700900123": "+447700900123", "60777": "60777", "ACME": "ACME",
		"+447700900123": "+447700900123",
	} {
		content, err := c.ReadCallback(
			signed(url.Values{
				"MessageUUID": {u1}, "From": {from}, "To": {"60777"}, "Text": {""},
				"Type": {"sms"},
			}))
		if err != nil || len(content.Inbound) != 1 || content.Inbound[0].From != want ||
			content.Inbound[0].To != "60777" {
			t.Errorf("%s: %+v, %v", from, content.Inbound, err)
		}
	}
}

func TestSignedCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	webtest.CheckRefused(t, c, provider.ErrMalformed, map[string]*provider.Callback{
		"no message": signed(url.Values{"Status": {"sent"}}),
		"long name":  signed(url.Values{"MessageUUID": {u1 + "0"}, "Status": {"sent"}}),
		"other query": signedAt(callback+"?x=1",
			url.Values{"MessageUUID": {u1}, "Status": {"sent"}}),
		"code of letters": signed(
			url.Values{"MessageUUID": {u1}, "Status": {"failed"}, "ErrorCode": {"x"}}),
		"status of words": signed(url.Values{"MessageUUID": {u1}, "Status": {"sent today"}}),
	})
	webtest.CheckIgnored(t, c,
		map[string]*provider.Callback{"no status": signed(url.Values{"MessageUUID": {u1}})})
}

// FuzzReadCallback signs every form, and then changes it. Reading the signed form does not panic.
// The changed one yields nothing, and under V2 alone neither does.
func FuzzReadCallback(f *testing.F) {
	f.Add("MessageUUID="+u1+"&Status=delivered", "MessageUUID="+u1+"&Status=failed")
	f.Add("MessageUUID="+u1+"&From=1&To=2&Text=STOP", "")
	f.Add("%zz", "a=b;c=d")
	c := channelWith(f)(token)
	f.Fuzz(func(t *testing.T, body, changed string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			form = url.Values{}
		}
		for name := range form {
			form[name] = form[name][:1]
		}
		call := signed(form)
		content, err := c.ReadCallback(call)
		if errors.Is(err, provider.ErrForged) {
			t.Error("a genuine callback was refused as forged")
		}
		webtest.CheckBounded(t, content, err)
		other, err := url.ParseQuery(changed)
		call.Body = []byte(changed)
		forged := err != nil ||
			single(other) && plivotest.SignV3(token, call.URL, "n-1", other) != call.Get(
				"X-Plivo-Signature-V3")
		if forged {
			webtest.CheckForged(t, c, call)
		}
		if _, err := c.ReadCallback(withoutV3(call)); err == nil {
			t.Error("accepted with signature V2 alone and no proof")
		}
		proven := withoutV3(signedAt(callback+"?key="+webtest.Key+"&proof="+proofOfKey, form))
		content, err = c.ReadCallback(proven)
		webtest.CheckBounded(t, content, err)
		for _, r := range content.Receipts {
			if r.Reference != "" || r.Key != webtest.Key {
				t.Errorf("the proof is for another message: %+v", r)
			}
		}
		if content.Inbound != nil {
			t.Error("an inbound message was accepted at the address of a message")
		}
	})
}

// single reports whether each field has one value under the signing of plivotest.
func single(form url.Values) bool {
	for _, values := range form {
		if len(values) > 1 {
			return false
		}
	}
	return true
}
