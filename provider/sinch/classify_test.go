package sinch

import (
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
)

func TestEveryRecordedAnswerIsClassified(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]provider.Result{
		"created":                   {Outcome: provider.Accepted, Reference: "01FC66621XXXXX119Z8PMV1QPQ"},
		"created_without_id":        {Outcome: provider.Unknown, Code: "201"},
		"created_cut_short":         {Outcome: provider.Unknown, Code: "201"},
		"bad_recipient":             {Outcome: provider.Rejected, Code: "400/syntax_constraint_violation"},
		"bad_recipient_by_name":     {Outcome: provider.Rejected, Code: "400/syntax_invalid_parameter_format"},
		"bad_field":                 {Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format"},
		"bad_sender":                {Outcome: provider.Refused, Code: "400/syntax_constraint_violation"},
		"bad_expiry":                {Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format"},
		"bad_callback":              {Outcome: provider.Refused, Code: "400/syntax_constraint_violation"},
		"bad_body":                  {Outcome: provider.Refused, Code: "400/syntax_constraint_violation"},
		"bad_json":                  {Outcome: provider.Refused, Code: "400/syntax_invalid_json"},
		"bad_request_in_html":       {Outcome: provider.Refused, Code: "400"},
		"unauthorized":              {Outcome: provider.Refused, Code: "401/unauthorized"},
		"no_credit":                 {Outcome: provider.Refused, Code: "402/payment_required"},
		"forbidden":                 {Outcome: provider.Refused, Code: "403/missing_callback_url"},
		"unknown_plan":              {Outcome: provider.Refused, Code: "404"},
		"rate_limited":              {Outcome: provider.Throttled, Code: "429/too_many_requests", RetryAfter: 3 * time.Second},
		"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429"},
		"internal_error":            {Outcome: provider.Unknown, Code: "500/internal_error"},
		"unavailable":               {Outcome: provider.Unknown, Code: "503"},
		"redirect":                  {Outcome: provider.Unknown, Code: "302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := api{}.Classify(recorded(t, name))
			if got.Outcome != want.Outcome || got.Code != want.Code || got.Reference != want.Reference || got.RetryAfter != want.RetryAfter {
				t.Errorf("%v %q %q %s, want %v %q %q %s", got.Outcome, got.Code, got.Reference, got.RetryAfter,
					want.Outcome, want.Code, want.Reference, want.RetryAfter)
			}
			if (got.Err == nil) != (want.Outcome == provider.Accepted) {
				t.Errorf("error %v for %v", got.Err, got.Outcome)
			}
			if got.Err != nil && strings.Contains(got.Err.Error(), recipient[1:]) {
				t.Error("the error shows the number")
			}
		})
	}
}
