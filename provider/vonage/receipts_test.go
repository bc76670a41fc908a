package vonage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, failed := "submitted", "undeliverable/1260"
			if v.server.SMS {
				taken, failed = "accepted", "failed/8"
			}
			s := webtest.Message()
			s.Text = "a=b & c"
			for _, content := range startRig(t, v, nil).CheckReceipts(t, s, []webtest.ReceiptCase{
				{
					Sent: webtest.Receipt{State: provider.Pending},
					Want: provider.Receipt{State: provider.Pending, Code: taken},
				},
				{
					Sent: webtest.Receipt{State: provider.Delivered},
					Want: provider.Receipt{State: provider.Delivered, Code: "delivered"},
				},
				{
					Sent: webtest.Receipt{State: provider.Undelivered},
					Want: provider.Receipt{
						State: provider.Undelivered, Cause: provider.NetworkError, Code: failed,
					},
				},
			}) {
				if content.ReplayID == "" {
					t.Error("a callback has no ReplayID")
				}
			}
		})
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startRig(t, v, nil).CheckInbound(t,
				provider.Inbound{
					Reference: "mo-1", From: recipient, To: "12345", Text: "STOP & go=away 你好",
				})
		})
	}
}

func TestSMSAPIHandsOverLongMessagesInParts(t *testing.T) {
	t.Parallel()
	startRig(t, variants()["SMS API"], nil).CheckInbound(t, provider.Inbound{
		Reference: "mo-2", From: recipient, To: "12345", Text: "second half", Group: 77, Part: 1,
		Parts: 2,
	})
}

func TestSMSAPIGivesEachPartAReferenceAndAReceipt(t *testing.T) {
	t.Parallel()
	rig := startRig(t, variants()["SMS API"], nil)
	r := rig.Send(
		t, provider.Submission{Key: key, To: recipient, Text: strings.Repeat("long ", 80)})
	if len(r.Parts) != 3 || r.Reference != "" {
		t.Fatalf("%+v", r)
	}
	check := func(state provider.ReceiptState, parts ...provider.Part) {
		t.Helper()
		for _, part := range parts {
			if got := rig.Callbacks.Next(t).Receipts[0]; got.Reference != part.Reference ||
				got.Key != key || got.State != state {
				t.Errorf("part %d: %+v, want %s", part.Index, got, part.Reference)
			}
		}
	}
	check(provider.Delivered, r.Parts...)
	submit := rig.Carrier.Submits()[0]
	for _, c := range []struct {
		about int
		parts []provider.Part
	}{{0, r.Parts}, {2, r.Parts[1:2]}} {
		status, err := rig.Carrier.SendReceipt(t.Context(), submit,
			webtest.Receipt{Part: c.about, State: provider.Undelivered})
		if err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
		check(provider.Undelivered, c.parts...)
	}
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startRig(t, v, map[string]any{"signature_secret_files": nil}).CheckNoReceipts(t)
		})
	}
}

// signedStatus returns a genuine callback of the Messages API with any body, without one claim.
func signedStatus(body, without string) *provider.Callback {
	return signedWith(body, map[string]any{without: nil})
}

// signedWith returns a genuine callback with other claims; nil omits one.
func signedWith(body string, change map[string]any) *provider.Callback {
	sum := sha256.Sum256([]byte(body))
	claims := map[string]any{
		"iat": now.Unix(), "jti": "id", "iss": "Vonage",
		"payload_hash": strings.ToUpper(hex.EncodeToString(sum[:])),
		"api_key":      apiKey, "application_id": application,
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	call := statusCall()
	call.Body = []byte(body)
	call.Header["Authorization"] = []string{
		"Bearer " + text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
	}
	return call
}

// signature signs parameters as the SMS API does.
func signature(parameters map[string]string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if name != "sig" {
			mac.Write([]byte("&" + name + "=" + strings.Map(underscore, parameters[name])))
		}
	}
	return strings.ToUpper(hex.EncodeToString(mac.Sum(nil)))
}

func underscore(r rune) rune {
	if r == '&' || r == '=' {
		return '_'
	}
	return r
}

// forms are the encodings of the SMS API's callbacks.
var forms = map[string]func(parameters map[string]string) *provider.Callback{
	"query": func(p map[string]string) *provider.Callback {
		return &provider.Callback{Method: http.MethodGet, URL: public + "?" + encode(p), At: now}
	},
	"form": func(p map[string]string) *provider.Callback {
		return &provider.Callback{
			Method: http.MethodPost, URL: public, At: now, Body: []byte(encode(p)),
			Header: map[string][]string{
				"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"},
			},
		}
	},
	"JSON": func(p map[string]string) *provider.Callback {
		body, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		return &provider.Callback{
			Method: http.MethodPost, URL: public, At: now, Body: body,
			Header: map[string][]string{"Content-Type": {"application/json"}},
		}
	},
}

// TestAnUnsignedObjectIsNotDecoded beyond the flat members that a signature needs: anybody may send
// one, and nested values take many times the memory of the body.
func TestAnUnsignedObjectIsNotDecoded(t *testing.T) { //nolint:paralleltest // It counts allocations.
	nested := strings.Repeat(`{"":0},`, 10_000) + `{"":0}`
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `"a%d":0,`, i)
	}
	for name, body := range map[string]string{
		"nested": `{"a":[` + nested + `]}`, "an array": `[` + nested + `]`,
		"many members": `{` + many.String() + `"b":0}`, "cut off": `{"a":"b",`, "empty": "",
		"twice": `{"a":"b","a":"b"}`, "followed": `{"a":"b"}{}`, "no value": `{"a"}`,
	} {
		callback := forms["JSON"](nil)
		callback.Body = []byte(body)
		channel := New(listenerSMS())
		allocations := testing.AllocsPerRun(1, func() {
			if h, err := channel.ReadCallback(callback); !errors.Is(err, provider.ErrForged) {
				t.Errorf("%s: got %+v, %v", name, h, err)
			}
		})
		if allocations > 3000 {
			t.Errorf("%s: %.0f allocations", name, allocations)
		}
	}
}

func encode(p map[string]string) string {
	form := url.Values{}
	for name, value := range p {
		form.Set(name, value)
	}
	return form.Encode()
}

// FuzzReadCallback reads every body of both APIs twice. With a wrong signature it must yield
// nothing. With a genuine one it must not panic, and codes have a bounded length.
func FuzzReadCallback(f *testing.F) {
	f.Add(statusBody, statusToken)
	f.Add(
		`{"channel":"sms","message_uuid":"m","from":"447700900123","to":"12345","text":"STOP","message_type":"text"}`, "a.b.c")
	f.Add(encode(receiptForm()), "AB")
	f.Add(
		"type=text&msisdn=447700900123&concat=true&concat-ref=x&concat-total=2&concat-part=1&timestamp=1795255200", "")
	f.Fuzz(func(t *testing.T, body, sign string) {
		messages, short := New(listener()), New(listenerSMS())
		forged := statusCall()
		forged.Body, forged.Header["Authorization"] = []byte(body), []string{"Bearer " + sign}
		if h, err := messages.ReadCallback(forged); err == nil && sign != statusToken {
			t.Fatalf("a forged status reads as %+v", h)
		}
		h, err := messages.ReadCallback(signedStatus(body, ""))
		webtest.CheckBounded(t, h, err)
		parameters, err := formOf(body)
		if err != nil {
			return
		}
		genuine := parameters["sig"]
		parameters["sig"] = sign
		if h, err := short.ReadCallback(forms["form"](parameters)); err == nil &&
			!strings.EqualFold(sign, genuine) && !strings.EqualFold(sign, signature(parameters)) {
			t.Fatalf("a forged receipt reads as %+v", h)
		}
		parameters["sig"] = signature(parameters)
		h, err = short.ReadCallback(forms["form"](parameters))
		webtest.CheckBounded(t, h, err)
	})
}
