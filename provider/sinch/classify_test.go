package sinch

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestEveryRecordedAnswerIsClassified(t *testing.T) {
	t.Parallel()
	webtest.CheckAnswers(t, "testdata/answers/*.http", api{}.Classify, map[string]provider.Result{
		"created": {
			Outcome: provider.Accepted, Reference: "01FC66621XXXXX119Z8PMV1QPQ",
		},
		"created_without_id": {Outcome: provider.Unknown, Code: "201"},
		"created_cut_short":  {Outcome: provider.Unknown, Code: "201"},
		"bad_recipient": {
			Outcome: provider.Rejected, Code: "400/syntax_constraint_violation",
		},
		"bad_recipient_by_name": {
			Outcome: provider.Rejected, Code: "400/syntax_invalid_parameter_format",
		},
		"bad_field": {
			Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format",
		},
		"bad_sender": {
			Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
		},
		"bad_sender_and_body": {
			Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
		},
		"bad_expiry": {
			Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format",
		},
		"bad_callback": {
			Outcome: provider.Refused, Code: "400/syntax_constraint_violation",
		},
		"bad_body": {
			Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
		},
		"bad_json":            {Outcome: provider.Refused, Code: "400/syntax_invalid_json"},
		"bad_request_in_html": {Outcome: provider.Unknown, Code: "400"},
		"unauthorized":        {Outcome: provider.Refused, Code: "401/unauthorized"},
		"no_credit":           {Outcome: provider.Refused, Code: "402/payment_required"},
		"forbidden":           {Outcome: provider.Refused, Code: "403/missing_callback_url"},
		"blocked_account":     {Outcome: provider.Refused, Code: "403/blocked_account"},
		"illegal_number_type": {
			Outcome: provider.Refused, Unfit: true, Code: "403/illegal_number_type",
		},
		"llegal_number_type": {
			Outcome: provider.Refused, Unfit: true, Code: "403/llegal_number_type",
		},
		"unknown_campaign": {
			Outcome: provider.Refused, Unfit: true, Code: "403/unknown_campaign",
		},
		"unknown_plan": {Outcome: provider.Refused, Code: "404"},
		"rate_limited": {
			Outcome: provider.Throttled, Code: "429/too_many_requests", RetryAfter: 3 * time.Second,
		},
		"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429"},
		"internal_error":            {Outcome: provider.Unknown, Code: "500/internal_error"},
		"unavailable":               {Outcome: provider.Unknown, Code: "503"},
		"redirect":                  {Outcome: provider.Unknown, Code: "302"},
	}, "bad_sender", "bad_sender_and_body", "unknown_campaign")
}
