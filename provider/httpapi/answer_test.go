package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/web"
)

// TestRulesForAClassOfStatusesLeaveOutThoseOfProxies although the description says that 4xx and 5xx
// mean refused.
func TestRulesForAClassOfStatusesLeaveOutThoseOfProxies(t *testing.T) {
	t.Parallel()
	classify := func(status int, rules ...any) provider.Outcome {
		values := document(t, "kannel", nil)
		said := values["answer"].(map[string]any)
		said["outcomes"] = append(rules, said["outcomes"].([]any)...)
		return httpapi.APIOf(open(t, values)).Classify(&web.Answer{Status: status}).Outcome
	}
	refused := func(status any) map[string]any {
		return map[string]any{
			"status": status, "outcome": "refused",
		}
	}
	for status, want := range map[int]provider.Outcome{
		http.StatusRequestTimeout:     provider.Unknown,
		http.StatusMisdirectedRequest: provider.Unknown, http.StatusBadGateway: provider.Unknown,
		http.StatusServiceUnavailable: provider.Unknown,
		http.StatusGatewayTimeout:     provider.Unknown,
		http.StatusTooManyRequests:    provider.Throttled, http.StatusGone: provider.Refused,
		http.StatusInternalServerError: provider.Refused,
	} {
		if got := classify(status, refused("4xx"), refused("5xx")); got != want {
			t.Errorf("status %d is %v, want %v", status, got, want)
		}
		if got := classify(status, refused(status)); got != provider.Refused {
			t.Errorf("status %d is %v, want refused by its rule", status, got)
		}
	}
}

func TestRetryAfterStandsWhereTheDescriptionSays(t *testing.T) {
	t.Parallel()
	values := document(t, "clicksend", nil)
	values["answer"].(map[string]any)["retry_after"] = "json:/wait"
	got := httpapi.APIOf(open(t, values)).Classify(
		&web.Answer{Status: http.StatusTooManyRequests, Body: []byte(`{"wait":2.5}`)})
	if got.Outcome != provider.Throttled || got.RetryAfter != 2500*time.Millisecond {
		t.Errorf("%v after %s", got.Outcome, got.RetryAfter)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(`{"data":{"messages":[{"message_id":"1","status":"SUCCESS"}]}}`))
	f.Add(202, []byte("0: Accepted for delivery"))
	apis := []web.API{
		httpapi.APIOf(open(f, document(f, "kannel", nil))),
		httpapi.APIOf(open(f, document(f, "clicksend", nil))),
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, api := range apis {
			r := api.Classify(&web.Answer{Status: status, Body: body})
			if len(r.Code) > 64 || r.Outcome == provider.Accepted && status/100 != 2 {
				t.Errorf("%v for %d, code of %d bytes", r.Outcome, status, len(r.Code))
			}
		}
	})
}
