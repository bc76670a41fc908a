package infobip

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
)

const report = `{"results":[{"messageId":"` + key + `","callbackData":"` + key + `","status":{"groupId":5,"id":12,"name":"REJECTED_NOT_ENOUGH_CREDITS"},"error":{"id":0}}]}`

// proofOfKey was made with another tool:
//
//	printf 'infobip callback %s' "$key" | openssl dgst -sha256 -hmac infobip-callback-s3cret
const proofOfKey = "8da4343acbf0faee68e60086b2a0bef6cde2da1df5948a134ddb56e72f2fe677"

func listener(auths ...Auth) *Channel {
	return New(Config{Auths: auths, Secrets: []string{secret, older}, User: "infobip", Header: "X-Secret", Callback: public})
}

func call(url, body string, header map[string][]string) *provider.Callback {
	return &provider.Callback{Method: http.MethodPost, URL: url, Header: header, Body: []byte(body), At: now}
}

func basic(text string) map[string][]string {
	return map[string][]string{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(text))}}
}

func TestEachProofIsBelievedOnlyWhereItIsConfigured(t *testing.T) {
	t.Parallel()
	certified := call(public, report, nil)
	certified.Certificate = true
	proofs := map[Auth]*provider.Callback{
		ByURL:         call(public+"?key="+key+"&proof="+proofOfKey, report, nil),
		ByBasic:       call(public, report, basic("infobip:"+older)),
		ByHeader:      call(public, report, map[string][]string{"X-Secret": {secret}}),
		ByCertificate: certified,
	}
	want := provider.Heard{Receipts: []provider.Receipt{{
		Reference: key, Key: key, State: provider.Undelivered, Cause: provider.NoCredit, Code: "REJECTED_NOT_ENOUGH_CREDITS", At: now,
	}}}
	for shown, c := range proofs {
		for configured := range proofs {
			got, err := listener(configured).Hear(c)
			if shown == configured {
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%d: %v\n%s", shown, err, diff)
				}
				continue
			}
			if !errors.Is(err, provider.ErrForged) || len(got.Receipts) != 0 {
				t.Errorf("%d shown where %d is configured: %+v, %v", shown, configured, got, err)
			}
		}
		if _, err := listener(ByURL, ByBasic, ByHeader, ByCertificate).Hear(c); err != nil {
			t.Errorf("%d is refused where all are configured: %v", shown, err)
		}
		if _, err := listener().Hear(c); !errors.Is(err, provider.ErrForged) {
			t.Errorf("%d is believed where nothing is configured: %v", shown, err)
		}
	}
}

func TestWrongProofsAreForged(t *testing.T) {
	t.Parallel()
	other := "f" + key[1:]
	all := listener(ByURL, ByBasic, ByHeader, ByCertificate)
	for name, c := range map[string]*provider.Callback{
		"nothing":             call(public, report, nil),
		"key without proof":   call(public+"?key="+key, report, nil),
		"proof without key":   call(public+"?proof="+proofOfKey, report, nil),
		"proof of another":    call(public+"?key="+other+"&proof="+proofOfKey, report, nil),
		"broken query":        call(public+"?key="+key+"&proof="+proofOfKey+"&%zz", report, nil),
		"no hexadecimal":      call(public+"?key="+key+"&proof=zz", report, nil),
		"wrong password":      call(public, report, basic("infobip:wrong")),
		"wrong user":          call(public, report, basic("other:"+secret)),
		"empty password":      call(public, report, basic("infobip:")),
		"no base 64":          call(public, report, map[string][]string{"Authorization": {"Basic ***"}}),
		"wrong header":        call(public, report, map[string][]string{"X-Secret": {"wrong"}}),
		"empty header":        call(public, report, map[string][]string{"X-Secret": {""}}),
		"secret as parameter": call(public+"?proof="+secret+"&key="+key, report, nil),
	} {
		if got, err := all.Hear(c); !errors.Is(err, provider.ErrForged) || len(got.Receipts) != 0 {
			t.Errorf("%s: %+v, %v; want ErrForged", name, got, err)
		}
	}
}

// An address is good for its own message: who has seen it cannot report on others, nor hand over messages.
func TestAddressOfOneMessageSpeaksForNoOther(t *testing.T) {
	t.Parallel()
	address := public + "?key=" + key + "&proof=" + proofOfKey
	for _, body := range []string{
		`{"results":[{"messageId":"ffffffffffffffffffffffffffffffff","status":{"groupId":3,"id":5}}]}`,
		`{"results":[{"messageId":"` + key + `","status":{"groupId":3,"id":5}},{"messageId":"other","status":{"groupId":3,"id":5}}]}`,
		`{"results":[{"messageId":"mo","from":"447700900123","to":"12345","text":"STOP"}]}`,
	} {
		if got, err := listener(ByURL).Hear(call(address, body, nil)); !errors.Is(err, provider.ErrForged) || len(got.Receipts)+len(got.Inbound) != 0 {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// TestAProvenKeyVouchesForNoOtherID: the proof in an address covers the key alone. With one address that was seen, a report on
// another message's id must not change that other message.
func TestAProvenKeyVouchesForNoOtherID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ffffffffffffffffffffffffffffffff", "34567890"} {
		body := `{"results":[{"messageId":"` + id + `","callbackData":"` + key + `","status":{"groupId":3,"id":5,"name":"DELIVERED_TO_HANDSET"}}]}`
		got, err := listener(ByURL).Hear(call(public+"?key="+key+"&proof="+proofOfKey, body, nil))
		want := provider.Heard{Receipts: []provider.Receipt{{Key: key, State: provider.Delivered, Code: "DELIVERED_TO_HANDSET", At: now}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", id, err, diff)
		}
		got, err = listener(ByHeader).Hear(call(public, body, map[string][]string{"X-Secret": {secret}}))
		if err != nil || len(got.Receipts) != 1 || got.Receipts[0].Reference != id {
			t.Errorf("%s from Infobip itself: %+v, %v", id, got, err)
		}
	}
}

func TestReportsComeInBatches(t *testing.T) {
	t.Parallel()
	got, err := listener(ByHeader).Hear(call(public, `{"results":[
		{"messageId":"a","status":{"groupId":3,"id":5,"name":"DELIVERED_TO_HANDSET"}},
		{"messageId":"b","callbackData":"order 77","status":{"groupId":2,"id":9,"name":"UNDELIVERABLE_NOT_DELIVERED"},"error":{"id":1}},
		{"status":{"groupId":3,"id":5}},
		{"messageId":"c","status":{"groupId":2,"id":9,"name":"has a number 447700900123"},"error":{"id":573}}]}`,
		map[string][]string{"X-Secret": {secret}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Receipt{
		{Reference: "a", State: provider.Delivered, Code: "DELIVERED_TO_HANDSET", At: now},
		{Reference: "b", State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "UNDELIVERABLE_NOT_DELIVERED/1", At: now},
		{Reference: "c", State: provider.Undelivered, Cause: provider.OptedOut, Code: "other/573", At: now},
	}
	if diff := cmp.Diff(want, got.Receipts); diff != "" {
		t.Error(diff)
	}
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `{`, `[]`, `{}`, `{"results":{}}`, `{"results":[{"status":"DELIVERED"}]}`} {
		if _, err := listener(ByHeader).Hear(call(public, body, map[string][]string{"X-Secret": {secret}})); !errors.Is(err, provider.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", body, err)
		}
	}
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
		if state, cause := (status{GroupID: c.group, ID: c.id}).state(c.fault); state != c.state || cause != c.cause {
			t.Errorf("group %d, status %d, error %d is %v %q, want %v %q", c.group, c.id, c.fault, state, cause, c.state, c.cause)
		}
	}
}
