package aws_test

import (
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/aws"
	"dispatcher/provider/web/webtest"
)

func TestWhatAWSCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	c := open(t, settings(nil))
	for text, want := range map[string]provider.Outcome{
		"": provider.Rejected, " \n": provider.Refused, strings.Repeat("ß", 1601): provider.Refused,
	} {
		s := submission()
		s.Text = text
		r := c.Send(t.Context(), *s)
		if r.Outcome != want || want == provider.Refused && r.Code != provider.Uncomposed {
			t.Errorf("a text of %d bytes: %v, %q, %v", len(text), r.Outcome, r.Code, r.Err)
		}
	}
	s := submission()
	s.Text = strings.Repeat("ß", 1600)
	if _, err := aws.APIOf(c).Compose(s); err != nil {
		t.Error(err)
	}
}

func TestValidityStaysWithinWhatAWSKeeps(t *testing.T) {
	t.Parallel()
	c := open(t, settings(nil))
	for validity, want := range map[time.Duration]string{
		-time.Hour: `"TimeToLive":5,`, 96 * time.Hour: `"TimeToLive":259200`,
	} {
		s := submission()
		s.Validity = time.Now().Add(validity)
		r, err := aws.APIOf(c).Compose(s)
		if err != nil {
			t.Fatal(err)
		}
		if body := strings.ReplaceAll(string(r.Body), "}", ",}"); !strings.Contains(body, want) {
			t.Errorf("validity %s is not written as %s", validity, want)
		}
	}
}

func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	webtest.CheckAnswers(t, "testdata/*.http", aws.APIOf(open(t, settings(nil))).Classify,
		map[string]provider.Result{
			"accepted": {
				Outcome: provider.Accepted, Reference: "862a8790-60c0-4430-9b2b-658bdexample",
			},
			"without_id": {Outcome: provider.Unknown, Code: "200/unreadable"},
			"malformed":  {Outcome: provider.Unknown, Code: "200/unreadable"},
			"no_json":    {Outcome: provider.Unknown, Code: "200/unreadable"},
			"throttled": {
				Outcome: provider.Throttled, Code: "400/ThrottlingException",
			},
			"throttled_when": {
				Outcome: provider.Throttled, Code: "400/ThrottlingException",
				RetryAfter: 2 * time.Second,
			},
			"too_many_requests": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 4 * time.Second,
			},
			"opted_out": {
				Outcome: provider.Rejected, Code: "400/DESTINATION_PHONE_NUMBER_OPTED_OUT",
			},
			"number_override": {
				Outcome: provider.Refused, Unfit: true,
				Code: "400/DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
			},
			"country_protected": {
				Outcome: provider.Refused, Unfit: true,
				Code: "400/DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
			},
			"bad_number": {
				Outcome: provider.Rejected, Code: "400/INVALID_PARAMETER",
			},
			"bad_number_field": {
				Outcome: provider.Rejected, Code: "400/FIELD_VALIDATION_FAILED",
			},
			"bad_number_and_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "400/INVALID_PARAMETER",
			},
			"invalid_without_field": {
				Outcome: provider.Refused, Code: "400/INVALID_PARAMETER",
			},
			"price_over_threshold": {
				Outcome: provider.Refused, Unfit: true, Code: "400/PRICE_OVER_THRESHOLD",
			},
			"country_blocked": {
				Outcome: provider.Refused, Unfit: true, Code: "400/DESTINATION_COUNTRY_BLOCKED",
			},
			"identity_for_country": {
				Outcome: provider.Refused, Unfit: true,
				Code: "400/INVALID_IDENTITY_FOR_DESTINATION_COUNTRY",
			},
			"bad_text": {
				Outcome: provider.Refused, Unfit: true, Code: "400/FIELD_VALIDATION_FAILED",
			},
			"too_many_requests_without_time": {Outcome: provider.Throttled, Code: "429"},
			"bad_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "400/SENDER_ID_NOT_REGISTERED",
			},
			"sender_not_there": {
				Outcome: provider.Refused, Unfit: true, Code: "400/SENDER_ID_NOT_SUPPORTED",
			},
			"no_identities": {
				Outcome: provider.Refused, Unfit: true, Code: "400/NO_ORIGINATION_IDENTITIES_FOUND",
			},
			"no_capability": {
				Outcome: provider.Refused, Unfit: true, Code: "400/NUMBER_CAPABILITIES_MISMATCH",
			},
			"message_type": {Outcome: provider.Refused, Code: "400/MESSAGE_TYPE_MISMATCH"},
			"spend_limit": {
				Outcome: provider.Refused, Code: "400/MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT",
			},
			"disabled":  {Outcome: provider.Refused, Code: "400/ACCOUNT_DISABLED"},
			"wrong_key": {Outcome: provider.Refused, Code: "400/UnrecognizedClientException"},
			"no_such_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "400/ResourceNotFoundException",
			},
			"no_such_pool":   {Outcome: provider.Refused, Code: "400/ResourceNotFoundException"},
			"internal_error": {Outcome: provider.Unknown, Code: "500/InternalServerException"},
			"unavailable":    {Outcome: provider.Unknown, Code: "503/UnknownError"},
			"new_exception":  {Outcome: provider.Unknown, Code: "400/SomethingNewException"},
			"number_as_code": {Outcome: provider.Unknown, Code: "400"},
		}, "bad_sender", "bad_number_and_sender", "no_such_sender", "no_identities",
		"no_capability")
}
