package telnyx

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
	"accepted":                 {Outcome: provider.Accepted, Reference: "40385f64-5717-4562-b3fc-2c963f66afa6"},
	"accepted_without_id":      {Outcome: provider.Unknown, Code: "200"},
	"accepted_cut":             {Outcome: provider.Unknown, Code: "200"},
	"invalid_recipient":        {Outcome: provider.Rejected, Code: "400/40310"},
	"invalid_recipient_e164":   {Outcome: provider.Rejected, Code: "400/10016"},
	"invalid_number_e164":      {Outcome: provider.Refused, Code: "400/10016"},
	"invalid_sender_e164":      {Outcome: provider.Refused, Code: "400/10016"},
	"too_long":                 {Outcome: provider.Refused, Code: "400/40302"},
	"stop":                     {Outcome: provider.Rejected, Code: "400/40300"},
	"sender":                   {Outcome: provider.Refused, Code: "400/40305"},
	"region":                   {Outcome: provider.Refused, Code: "400/40309"},
	"credentials":              {Outcome: provider.Refused, Code: "401/10009"},
	"credentials_without_body": {Outcome: provider.Refused, Code: "401"},
	"funds":                    {Outcome: provider.Refused, Code: "403/20100"},
	"unlisted_code":            {Outcome: provider.Refused, Code: "422/10027"},
	"number_code":              {Outcome: provider.Rejected, Code: "400/40322"},
	"queue_full":               {Outcome: provider.Throttled, Code: "429/40318"},
	"throttled":                {Outcome: provider.Throttled, Code: "429/10011"},
	"throttled_retry_after":    {Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 2 * time.Second},
	"throttled_reset":          {Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 5 * time.Second},
	"throttled_epoch":          {Outcome: provider.Throttled, Code: "429"},
	"spend_limit":              {Outcome: provider.Refused, Code: "429/40333"},
	"server_error":             {Outcome: provider.Unknown, Code: "500/10007"},
	"server_error_known_code":  {Outcome: provider.Unknown, Code: "503/40310"},
	"not_json":                 {Outcome: provider.Unknown, Code: "400"},
	"no_errors":                {Outcome: provider.Unknown, Code: "400"},
	"code_with_number":         {Outcome: provider.Refused, Code: "400/other"},
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
			t.Errorf("%s: %v, %q", code, v.outcome, v.why)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(`{"data":{"id":"1"}}`))
	f.Add(400, []byte(`{"errors":[{"code":"40310","source":{"pointer":"/to"}}]}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		r := new(api).Classify(&web.Answer{Status: status, Header: http.Header{}, Body: body})
		if (r.Outcome == provider.Accepted) != (r.Err == nil) || (r.Outcome == provider.Accepted) != (r.Reference != "") {
			t.Errorf("%+v", r)
		}
	})
}
