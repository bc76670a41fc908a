package infobip

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

const report = `{"results":[{"messageId":"` + key + `","callbackData":"` + key +
	`","status":{"groupId":5,"id":12,"name":"REJECTED_NOT_ENOUGH_CREDITS"},"error":{"id":0}}]}`

// proofOfKey was made with another tool:
//
//	printf 'infobip callback %s' "$key" | openssl dgst -sha256 -hmac infobip-callback-s3cret
const proofOfKey = "8da4343acbf0faee68e60086b2a0bef6cde2da1df5948a134ddb56e72f2fe677"

func listener(auths ...Auth) *Channel {
	return New(Config{
		Auths: auths, Secrets: []string{secret, older}, User: "infobip", Header: "X-Secret",
		Callback: public,
	})
}

func call(url, body string, header map[string][]string) *provider.Callback {
	return &provider.Callback{
		Method: http.MethodPost, URL: url, Header: header, Body: []byte(body), At: now,
	}
}

func basic(text string) map[string][]string {
	return map[string][]string{
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(text))},
	}
}

func TestEachProofIsAcceptedOnlyWhereItIsConfigured(t *testing.T) {
	t.Parallel()
	certified := call(public, report, nil)
	certified.Certificate = true
	proofs := map[Auth]*provider.Callback{
		ByURL:         call(public+"?key="+key+"&proof="+proofOfKey, report, nil),
		ByBasic:       call(public, report, basic("infobip:"+older)),
		ByHeader:      call(public, report, map[string][]string{"X-Secret": {secret}}),
		ByCertificate: certified,
	}
	want := provider.CallbackContent{Receipts: []provider.Receipt{{
		Reference: key, Key: key, State: provider.Undelivered, Cause: provider.NoCredit,
		Code: "REJECTED_NOT_ENOUGH_CREDITS",
	}}}
	for shown, c := range proofs {
		for configured := range proofs {
			if shown == configured {
				webtest.CheckContent(t, listener(configured), c, want)
			} else {
				webtest.CheckForged(t, listener(configured), c)
			}
		}
		webtest.CheckContent(t, listener(ByURL, ByBasic, ByHeader, ByCertificate), c, want)
		webtest.CheckForged(t, listener(), c)
	}
}

func TestWrongProofsAreForged(t *testing.T) {
	t.Parallel()
	other := "f" + key[1:]
	webtest.CheckRefused(t, listener(ByURL, ByBasic, ByHeader, ByCertificate), provider.ErrForged,
		map[string]*provider.Callback{
			"nothing":           call(public, report, nil),
			"key without proof": call(public+"?key="+key, report, nil),
			"proof without key": call(public+"?proof="+proofOfKey, report, nil),
			"proof of another":  call(public+"?key="+other+"&proof="+proofOfKey, report, nil),
			"another proof": call(public+"?key="+key+"&proof="+strings.Repeat("00", 32),
				report, nil),
			"broken query": call(public+"?key="+key+"&proof="+proofOfKey+"&%zz", report,
				nil),
			"no hexadecimal": call(public+"?key="+key+"&proof=zz", report, nil),
			"wrong password": call(public, report, basic("infobip:wrong")),
			"wrong user":     call(public, report, basic("other:"+secret)),
			"empty password": call(public, report, basic("infobip:")),
			"no base 64": call(public, report,
				map[string][]string{"Authorization": {"Basic ***"}}),
			"wrong header":        call(public, report, map[string][]string{"X-Secret": {"wrong"}}),
			"empty header":        call(public, report, map[string][]string{"X-Secret": {""}}),
			"secret as parameter": call(public+"?proof="+secret+"&key="+key, report, nil),
		})
}

// TestACallbackURLIsValidForItsMessageOnly: whoever sees the URL cannot report on other messages or
// send inbound ones.
func TestACallbackURLIsValidForItsMessageOnly(t *testing.T) {
	t.Parallel()
	proven := func(body string) *provider.Callback {
		return call(public+"?key="+key+"&proof="+proofOfKey, body, nil)
	}
	webtest.CheckRefused(t, listener(ByURL), provider.ErrForged, webtest.Bodies(
		proven,
		`{"results":[{"messageId":"ffffffffffffffffffffffffffffffff","status":{"groupId":3,"id":5}}]}`,
		`{"results":[{"messageId":"`+key+
			`","status":{"groupId":3,"id":5}},{"messageId":"other","status":{"groupId":3,"id":5}}]}`,
		`{"results":[{"messageId":"mo","from":"447700900123","to":"12345","text":"STOP"}]}`,
	))
}

// TestAProofCoversNoOtherID: the proof in a callback URL covers the key alone. A report with the id
// of another message must not change that message.
func TestAProofCoversNoOtherID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ffffffffffffffffffffffffffffffff", "34567890"} {
		body := `{"results":[{"messageId":"` + id + `","callbackData":"` + key +
			`","status":{"groupId":3,"id":5,"name":"DELIVERED_TO_HANDSET"}}]}`
		webtest.CheckContent(t, listener(ByURL),
			call(public+"?key="+key+"&proof="+proofOfKey, body, nil), provider.CallbackContent{
				Receipts: []provider.Receipt{
					{Key: key, State: provider.Delivered, Code: "DELIVERED_TO_HANDSET"},
				},
			})
		got, err := listener(ByHeader).ReadCallback(fromInfobip(body))
		if err != nil || len(got.Receipts) != 1 || got.Receipts[0].Reference != id {
			t.Errorf("%s from Infobip itself: %+v, %v", id, got, err)
		}
	}
}

// fromInfobip is a callback with the secret in a header field.
func fromInfobip(body string) *provider.Callback {
	return call(public, body, map[string][]string{"X-Secret": {secret}})
}

func TestReportsComeInBatches(t *testing.T) {
	t.Parallel()
	webtest.CheckContent(t, listener(ByHeader), fromInfobip(`{"results":[
		{"messageId":"a","status":{"groupId":3,"id":5,"name":"DELIVERED_TO_HANDSET"}},
		{"messageId":"b","callbackData":"order 77","status":{"groupId":2,"id":9,"name":"UNDELIVERABLE_NOT_DELIVERED"},"error":{"id":1}},
		{"status":{"groupId":3,"id":5}},
		{"messageId":"c","status":{"groupId":2,"id":9,"name":"has a number 447700900123"},"error":{"id":573}}]}`), provider.CallbackContent{Receipts: []provider.Receipt{
		{Reference: "a", State: provider.Delivered, Code: "DELIVERED_TO_HANDSET"},
		{
			Reference: "b", State: provider.Undelivered, Cause: provider.UnknownNumber,
			Code: "UNDELIVERABLE_NOT_DELIVERED/1",
		},
		{Reference: "c", State: provider.Undelivered, Cause: provider.OptedOut, Code: "other/573"},
	}})
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	webtest.CheckRefused(t, listener(ByHeader), provider.ErrMalformed, webtest.Bodies(
		fromInfobip, ``, `{`, `[]`, `{}`, `{"results":{}}`, `{"results":[{"status":"DELIVERED"}]}`,
	))
}

func TestStatusesAndErrorsHaveOneMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		group, id, fault int
		state            provider.ReceiptState
		cause            provider.Cause
	}{
		{0, 0, 0, provider.Pending, ""},
		{1, 26, 0, provider.Pending, ""},
		{3, 2, 0, provider.Pending, ""},
		{3, 5, 0, provider.Delivered, ""},
		{4, 29, 0, provider.Pending, ""},
		{4, 15, 0, provider.Undelivered, provider.Expired},
		{4, 15, 27, provider.Undelivered, provider.Absent},
		{2, 9, 0, provider.Undelivered, ""},
		{2, 9, 1, provider.Undelivered, provider.UnknownNumber},
		{2, 9, 6, provider.Undelivered, provider.Absent},
		{2, 9, 13, provider.Undelivered, provider.Blocked},
		{2, 9, 502, provider.Undelivered, provider.NetworkError},
		{2, 9, 1153, provider.Undelivered, provider.NetworkError},
		{2, 9, 607, provider.Undelivered, provider.Spam},
		{2, 9, 9999, provider.Undelivered, ""},
		{5, 10, 0, provider.Undelivered, provider.OptedOut},
		{5, 11, 0, provider.Undelivered, provider.BadSender},
		{5, 12, 0, provider.Undelivered, provider.NoCredit},
		{5, 52, 0, provider.Undelivered, provider.UnknownNumber},
		{5, 777, 0, provider.Undelivered, ""},
		{9, 1, 0, provider.Pending, ""},
	} {
		if state, cause := (status{GroupID: c.group, ID: c.id}).state(c.fault); state != c.state ||
			cause != c.cause {
			t.Errorf("group %d, status %d, error %d is %v %q, want %v %q", c.group, c.id, c.fault,
				state, cause, c.state, c.cause)
		}
	}
}

// way is a way to authenticate callbacks.
type way struct {
	server   infobiptest.Config
	settings map[string]any
}

func ways() map[string]way {
	return map[string]way{
		"url": {infobiptest.Config{}, nil},
		"basic": {
			infobiptest.Config{User: "infobip", Password: older},
			map[string]any{"callback_auth": "basic", "callback_user": "infobip"},
		},
		"header": {
			infobiptest.Config{Header: "X-Secret", Secret: secret},
			map[string]any{"callback_auth": "header", "callback_header": "x-secret"},
		},
	}
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := startRig(t, w.server, webtest.Behaviour{}, w.settings).CheckReceipts(t,
				webtest.Message(), []webtest.ReceiptCase{
					{
						Sent: webtest.Receipt{State: provider.Pending},
						Want: provider.Receipt{State: provider.Pending, Code: "PENDING_ACCEPTED"},
					},
					{
						Sent: webtest.Receipt{State: provider.Delivered},
						Want: provider.Receipt{
							State: provider.Delivered, Code: "DELIVERED_TO_HANDSET",
						},
					},
					{
						Sent: webtest.Receipt{State: provider.Undelivered},
						Want: provider.Receipt{
							State: provider.Undelivered, Cause: provider.Absent,
							Code: "UNDELIVERABLE_NOT_DELIVERED/27",
						},
					},
					{
						Sent: webtest.Receipt{
							State: provider.Pending, Code: "3/2/DELIVERED_TO_OPERATOR/0",
						},
						Want: provider.Receipt{
							State: provider.Pending, Code: "DELIVERED_TO_OPERATOR",
						},
					},
				})
			if got := content[0].Receipts[0].Reference; got != key {
				t.Errorf("the reference is %q, want the key", got)
			}
		})
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	in := provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP"}
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := startRig(t, w.server, webtest.Behaviour{}, w.settings)
			if name != "url" {
				rig.CheckInbound(t, in)
				return
			}
			// an address without a proof, which anybody could use
			status, err := rig.Carrier.SendInbound(t.Context(), rig.Callbacks.URL, in)
			if err != nil {
				t.Fatal(err)
			}
			if failed := <-rig.Callbacks.Failed; !errors.Is(failed, provider.ErrForged) ||
				status != http.StatusForbidden {
				t.Errorf("%v, status %d", failed, status)
			}
		})
	}
}

func TestWithoutAProofNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	rig := startRig(t, infobiptest.Config{}, webtest.Behaviour{Receipts: true},
		map[string]any{"callback_secret_files": nil})
	rig.CheckNoReceipts(t)
	if rig.Channel.Capabilities().LookupFor == 0 {
		t.Error("Lookup is false without callbacks, want true")
	}
}

func TestLookupFindsWhatWasTakenAndLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	webtest.CheckLookups(t, func(t *testing.T, b webtest.Behaviour, certain bool) webtest.Finder {
		return startRig(t, infobiptest.Config{}, b,
			map[string]any{"absence_is_certain": certain}).Channel
	}, map[string]webtest.Lookup{
		"answered":                 {Reply: providertest.Accept, Want: provider.Taken},
		"taken, answer lost":       {Reply: providertest.Lose, Want: provider.Taken},
		"the message was at fault": {Reply: providertest.Reject, Want: provider.LookupRejected},
		"the account was at fault": {Reply: providertest.Refuse, Want: provider.NotTaken},
		"not taken":                {Reply: providertest.Cut, Want: provider.Unanswered},
		"not taken, absence counts as that": {
			Reply: providertest.Cut, Certain: true, Want: provider.NotTaken,
		},
	})
}

func TestLookupAcceptsNoOtherMessageAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{
		`{"results":[{"messageId":"other"}]}`, `{}`, `{"results":null}`, `[]`, ``,
	} {
		a := recorded(t, "accepted")
		a.Body = []byte(body)
		if got := c.lookup(key).Result(a); got.State != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.lookup(key).Result(recorded(t, "rate_limited")); got.State != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
	if got := New(Config{}).Find(t.Context(), ""); got.State != provider.Unanswered ||
		got.Err == nil {
		t.Errorf("a lookup without a key: %+v", got)
	}
}

// FuzzReadCallback reads every body twice. Without a proof it must yield nothing. With one it must
// not panic, and codes have a bounded length.
func FuzzReadCallback(f *testing.F) {
	f.Add(report, "?key="+key+"&proof=00", "Basic aW5mb2JpcDp4")
	f.Add(`{"results":[{"messageId":"mo","from":"447700900123","to":"12345","text":"STOP"}]}`, "",
		"")
	f.Add(
		`{"results":[{"messageId":"a","status":{"groupId":2,"id":-1,"name":"x y"},"error":{"id":-447700900123}}]}`, "?%zz", "Basic")
	f.Fuzz(func(t *testing.T, body, query, authorization string) {
		all := listener(ByURL, ByBasic, ByHeader, ByCertificate)
		forged := call(public+query, body, map[string][]string{"Authorization": {authorization}})
		webtest.CheckForged(t, all, forged)
		for _, genuine := range []*provider.Callback{
			fromInfobip(body),
			call(listener(ByURL).cfg.proofs().Address(public, key), body, nil),
		} {
			content, err := all.ReadCallback(genuine)
			webtest.CheckBounded(t, content, err)
		}
	})
}
