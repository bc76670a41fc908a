package plivo

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
	"queued":                  {Outcome: provider.Accepted, Reference: "db3ce55a-7f1d-11e1-8ea7-1231380bc196"},
	"queued_without_uuid":     {Outcome: provider.Unknown, Code: "202"},
	"queued_empty_list":       {Outcome: provider.Unknown, Code: "202"},
	"queued_cut":              {Outcome: provider.Unknown, Code: "202"},
	"recipient":               {Outcome: provider.Rejected, Code: "400/dst"},
	"recipient_and_sender":    {Outcome: provider.Refused, Code: "400/src"},
	"recipient_as_documented": {Outcome: provider.Rejected, Code: "400/dst"},
	"destination_country":     {Outcome: provider.Refused, Code: "400/country"},
	"destination_not_enabled": {Outcome: provider.Refused, Code: "400"},
	"callback":                {Outcome: provider.Refused, Code: "400/url"},
	"text":                    {Outcome: provider.Refused, Code: "400/text"},
	"sender":                  {Outcome: provider.Refused, Code: "400/src"},
	"sender_in_object":        {Outcome: provider.Refused, Code: "400/src"},
	"credit":                  {Outcome: provider.Refused, Code: "400/credit"},
	"unlisted":                {Outcome: provider.Refused, Code: "400"},
	"payment":                 {Outcome: provider.Refused, Code: "402"},
	"credentials":             {Outcome: provider.Refused, Code: "401"},
	"not_found":               {Outcome: provider.Refused, Code: "404"},
	"not_found_by_a_proxy":    {Outcome: provider.Unknown, Code: "404"},
	"method":                  {Outcome: provider.Refused, Code: "405"},
	"throttled":               {Outcome: provider.Throttled, Code: "429"},
	"throttled_retry_after":   {Outcome: provider.Throttled, Code: "429", RetryAfter: 4 * time.Second},
	"throttled_without_body":  {Outcome: provider.Throttled, Code: "429"},
	"server_error":            {Outcome: provider.Unknown, Code: "500"},
	"unavailable":             {Outcome: provider.Unknown, Code: "503"},
	"not_json":                {Outcome: provider.Unknown, Code: "400"},
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

func FuzzClassify(f *testing.F) {
	f.Add(202, []byte(`{"message_uuid":["1"]}`))
	f.Add(400, []byte(`{"error":"dst is not valid"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		r := new(api).Classify(&web.Answer{Status: status, Header: http.Header{}, Body: body})
		if (r.Outcome == provider.Accepted) != (r.Err == nil) || (r.Outcome == provider.Accepted) != (r.Reference != "") {
			t.Errorf("%+v", r)
		}
	})
}
