package httpapi_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/web"
)

// fixture reads an answer as it was on the wire.
func fixture(t testing.TB, name string) *web.Answer {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".http")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // It is in memory.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &web.Answer{Status: r.StatusCode, Header: r.Header, Body: body, At: time.Now()}
}

func TestAnswersAreClassifiedAsDescribed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]provider.Result{
		"kannel_accepted":          {Outcome: provider.Accepted},
		"kannel_queued":            {Outcome: provider.Accepted},
		"kannel_denied":            {Outcome: provider.Rejected, Code: "400"},
		"kannel_authorization":     {Outcome: provider.Refused, Code: "403"},
		"kannel_temporal_failure":  {Outcome: provider.Refused, Code: "503"},
		"kannel_slow_down":         {Outcome: provider.Throttled, Code: "429"},
		"kannel_slow_down_when":    {Outcome: provider.Throttled, Code: "429", RetryAfter: 9 * time.Second},
		"kannel_other_text":        {Outcome: provider.Unknown, Code: "202"},
		"kannel_internal_error":    {Outcome: provider.Unknown, Code: "500"},
		"clicksend_accepted":       {Outcome: provider.Accepted, Reference: "BF7AD270-0DE2-418B-B606-71D527D9C1AE"},
		"clicksend_bad_recipient":  {Outcome: provider.Rejected, Code: "200/INVALID_RECIPIENT"},
		"clicksend_no_credit":      {Outcome: provider.Refused, Code: "200/INSUFFICIENT_CREDIT"},
		"clicksend_new_word":       {Outcome: provider.Unknown, Code: "200/SOMETHING_NEW"},
		"clicksend_without_id":     {Outcome: provider.Unknown, Code: "200/SUCCESS"},
		"clicksend_unauthorized":   {Outcome: provider.Refused, Code: "401"},
		"clicksend_malformed":      {Outcome: provider.Unknown, Code: "200"},
		"clicksend_number_as_code": {Outcome: provider.Unknown, Code: "200"},
		"clicksend_bad_gateway":    {Outcome: provider.Unknown, Code: "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway, _, _ := strings.Cut(name, "_")
			got := httpapi.APIOf(open(t, document(t, gateway, nil))).Classify(fixture(t, name))
			if (got.Err == nil) != (want.Outcome == provider.Accepted) {
				t.Errorf("error %v with outcome %v", got.Err, got.Outcome)
			}
			if got.Outcome != want.Outcome || got.Code != want.Code || got.Reference != want.Reference || got.RetryAfter != want.RetryAfter {
				t.Errorf("got %v %q %q %s, want %v %q %q %s", got.Outcome, got.Code, got.Reference, got.RetryAfter,
					want.Outcome, want.Code, want.Reference, want.RetryAfter)
			}
		})
	}
}

// TestStatusesOfAnybodyAreMeantOnlyByName: Kannel's description says that 4xx is refused.
func TestStatusesOfAnybodyAreMeantOnlyByName(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]provider.Outcome{
		http.StatusRequestTimeout: provider.Unknown, http.StatusMisdirectedRequest: provider.Unknown,
		http.StatusTooManyRequests: provider.Throttled, http.StatusGone: provider.Refused,
	} {
		values := document(t, "kannel", nil)
		if got := httpapi.APIOf(open(t, values)).Classify(&web.Answer{Status: status}); got.Outcome != want {
			t.Errorf("%d is %v, want %v", status, got.Outcome, want)
		}
		said := values["answer"].(map[string]any)
		said["outcomes"] = append([]any{map[string]any{"status": status, "outcome": "refused"}}, said["outcomes"].([]any)...)
		if got := httpapi.APIOf(open(t, values)).Classify(&web.Answer{Status: status}); got.Outcome != provider.Refused {
			t.Errorf("%d is %v though its rule says refused", status, got.Outcome)
		}
	}
}

func TestRetryAfterStandsWhereTheDescriptionSays(t *testing.T) {
	t.Parallel()
	values := document(t, "clicksend", nil)
	values["answer"].(map[string]any)["retry_after"] = "json:/wait"
	got := httpapi.APIOf(open(t, values)).Classify(&web.Answer{Status: http.StatusTooManyRequests, Body: []byte(`{"wait":2.5}`)})
	if got.Outcome != provider.Throttled || got.RetryAfter != 2500*time.Millisecond {
		t.Errorf("%v after %s", got.Outcome, got.RetryAfter)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(`{"data":{"messages":[{"message_id":"1","status":"SUCCESS"}]}}`))
	f.Add(202, []byte("0: Accepted for delivery"))
	apis := []web.API{httpapi.APIOf(open(f, document(f, "kannel", nil))), httpapi.APIOf(open(f, document(f, "clicksend", nil)))}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, api := range apis {
			r := api.Classify(&web.Answer{Status: status, Body: body})
			if len(r.Code) > 64 || r.Outcome == provider.Accepted && status/100 != 2 {
				t.Errorf("%v for %d, code of %d bytes", r.Outcome, status, len(r.Code))
			}
		}
	})
}
