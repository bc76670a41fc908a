package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// TestEachVerdictSaysItsOutcomeWhyAndWhatIsAtFault: and one that says nothing is Unknown.
func TestEachVerdictSaysItsOutcomeWhyAndWhatIsAtFault(t *testing.T) {
	t.Parallel()
	const why = "it says so"
	for name, c := range map[string]struct{ got, want web.Meaning }{
		"none":       {web.Meaning{}, web.Meaning{Outcome: provider.Unknown}},
		"unknown":    {web.Unknown(why), web.Meaning{Outcome: provider.Unknown, Why: why}},
		"rejected":   {web.Rejected(why), web.Meaning{Outcome: provider.Rejected, Why: why}},
		"throttled":  {web.Throttled(why), web.Meaning{Outcome: provider.Throttled, Why: why}},
		"refused":    {web.Refused(why), web.Meaning{Outcome: provider.Refused, Why: why, Blame: web.OnChannel}},
		"bad sender": {web.BadSender(why), web.Meaning{Outcome: provider.Refused, Why: why, Blame: web.OnSender}},
		"unfit":      {web.Unfit(why), web.Meaning{Outcome: provider.Refused, Why: why, Blame: web.OnMessage}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		r := (&web.Answer{Status: 400}).Result(c.got, "")
		if r.Outcome != c.want.Outcome || r.Err == nil || r.Err.Error() != c.want.Why {
			t.Errorf("%s: its result is %+v", name, r)
		}
	}
}

func TestResultsShowTheStatusAndABoundedCode(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400}
	for code, want := range map[string]string{
		"": "400", "21211": "400/21211", "E_NO.CREDIT-1": "400/E_NO.CREDIT-1", "+447700900123": "400/other", "447700900123": "400/other",
		"a b": "400/other", strings.Repeat("a", 41): "400/other", "ä": "400/other",
	} {
		if r := a.Result(web.Rejected("why"), code); r.Code != want || r.Outcome != provider.Rejected || r.Err == nil {
			t.Errorf("%q: %+v, want %q", code, r, want)
		}
	}
	if r := a.Unreadable("1"); r.Outcome != provider.Unknown || r.Err == nil || r.Code != "400/1" {
		t.Errorf("unreadable: %+v", r)
	}
}

// TestOnlyWhatIsThrottledWaits: a refusal goes to another channel at once, whatever its answer asks for.
func TestOnlyWhatIsThrottledWaits(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400, Header: http.Header{"Retry-After": {"9"}}}
	for v, want := range map[web.Meaning]time.Duration{
		web.Throttled("why"): 9 * time.Second, web.Rejected("why"): 0, web.Refused("why"): 0, web.Unfit("why"): 0, web.Unknown("why"): 0,
	} {
		if r := a.Result(v, "1"); r.RetryAfter != want {
			t.Errorf("%v waits %v, want %v", v.Outcome, r.RetryAfter, want)
		}
	}
}

func TestOnlyStatusesThatSayItAloneAreVerdicts(t *testing.T) {
	t.Parallel()
	want := map[int]provider.Outcome{401: provider.Refused, 403: provider.Refused, 429: provider.Throttled}
	for status := 200; status < 600; status++ {
		r, ok := (&web.Answer{Status: status}).ByStatus("")
		if outcome, known := want[status]; ok != known || ok && r.Outcome != outcome {
			t.Errorf("%d: %v, %t", status, r.Outcome, ok)
		}
	}
}
