package twilio

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// answers says what each recorded answer means.
var answers = map[string]provider.Result{
	"created":                   {Outcome: provider.Accepted, Reference: "SM1f0e8ae6ade43cb3c0ce4525424e404f"},
	"created_without_sid":       {Outcome: provider.Unknown, Code: "201"},
	"created_cut":               {Outcome: provider.Unknown, Code: "201"},
	"invalid_number":            {Outcome: provider.Rejected, Code: "400/21211"},
	"unsubscribed":              {Outcome: provider.Rejected, Code: "400/21610"},
	"too_long":                  {Outcome: provider.Refused, Code: "400/21617"},
	"no_route":                  {Outcome: provider.Refused, Code: "400/21612"},
	"region":                    {Outcome: provider.Refused, Code: "403/21408"},
	"credentials":               {Outcome: provider.Refused, Code: "401/20003"},
	"credentials_without_body":  {Outcome: provider.Refused, Code: "401"},
	"unlisted_code":             {Outcome: provider.Refused, Code: "400/21999"},
	"queue_full":                {Outcome: provider.Throttled, Code: "400/21611"},
	"throttled":                 {Outcome: provider.Throttled, Code: "429/20429"},
	"throttled_retry_after":     {Outcome: provider.Throttled, Code: "429/20429", RetryAfter: 3 * time.Second},
	"throttled_without_body":    {Outcome: provider.Throttled, Code: "429"},
	"day_used_up":               {Outcome: provider.Refused, Code: "429/63038"},
	"server_error":              {Outcome: provider.Unknown, Code: "500/20500"},
	"unavailable":               {Outcome: provider.Unknown, Code: "503"},
	"not_json":                  {Outcome: provider.Unknown, Code: "400"},
	"redirect":                  {Outcome: provider.Unknown, Code: "307"},
	"code_is_no_number":         {Outcome: provider.Unknown, Code: "400"},
	"request_timeout_with_code": {Outcome: provider.Unknown, Code: "408/20408"},
}

func TestAnswersMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	recorded, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil || len(recorded) != len(answers) {
		t.Fatalf("%d recorded answers, %d expectations, %v", len(recorded), len(answers), err)
	}
	for _, file := range recorded {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, known := answers[name]
			if !known {
				t.Fatal("nobody says what it means")
			}
			got := new(api).Classify(webtest.ReadAnswer(t, file))
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(provider.Result{}, "Err")); diff != "" {
				t.Error(diff)
			}
			if got.Outcome != provider.Accepted && (got.Err == nil || strings.Contains(got.Err.Error(), "7700900")) {
				t.Errorf("the error is %v", got.Err)
			}
		})
	}
}

func TestEveryCodeOfTheTableExplainsItself(t *testing.T) {
	t.Parallel()
	for code, v := range verdicts {
		if v.why == "" || v.outcome == provider.Accepted || v.outcome == provider.Unknown {
			t.Errorf("%d: %v, %q", code, v.outcome, v.why)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(201, []byte(`{"sid":"SM1"}`))
	f.Add(400, []byte(`{"code":21211}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		r := new(api).Classify(&web.Answer{Status: status, Header: http.Header{}, Body: body})
		if (r.Outcome == provider.Accepted) != (r.Err == nil) || (r.Outcome == provider.Accepted) != (r.Reference != "") {
			t.Errorf("%+v", r)
		}
	})
}
