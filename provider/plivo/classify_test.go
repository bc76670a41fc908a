package plivo

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestAnswersMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	webtest.CheckAnswers(t, "testdata/answers/*.txt", new(api).Classify, map[string]provider.Result{
		"queued": {
			Outcome: provider.Accepted, Reference: "db3ce55a-7f1d-11e1-8ea7-1231380bc196",
		},
		"queued_without_uuid":       {Outcome: provider.Unknown, Code: "202"},
		"queued_empty_list":         {Outcome: provider.Unknown, Code: "202"},
		"queued_cut":                {Outcome: provider.Unknown, Code: "202"},
		"recipient":                 {Outcome: provider.Rejected, Code: "400/dst"},
		"recipient_and_sender":      {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
		"recipient_as_documented":   {Outcome: provider.Rejected, Code: "400/dst"},
		"destination_country":       {Outcome: provider.Refused, Unfit: true, Code: "400/country"},
		"destination_not_enabled":   {Outcome: provider.Refused, Unfit: true, Code: "400"},
		"callback":                  {Outcome: provider.Refused, Code: "400/url"},
		"text":                      {Outcome: provider.Refused, Unfit: true, Code: "400/text"},
		"sender":                    {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
		"sender_for_country":        {Outcome: provider.Refused, Unfit: true, Code: "400/country"},
		"sender_for_destination":    {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
		"sender_of_another_account": {Outcome: provider.Refused, Unfit: true, Code: "400/sender"},
		"sender_is_no_phone_number": {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
		"sender_in_object":          {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
		"caller":                    {Outcome: provider.Refused, Unfit: true, Code: "400/caller"},
		"credit":                    {Outcome: provider.Refused, Code: "400/credit"},
		"unlisted":                  {Outcome: provider.Refused, Code: "400"},
		"payment":                   {Outcome: provider.Refused, Code: "402"},
		"credentials":               {Outcome: provider.Refused, Code: "401"},
		"not_found":                 {Outcome: provider.Refused, Code: "404"},
		"not_found_by_a_proxy":      {Outcome: provider.Unknown, Code: "404"},
		"method":                    {Outcome: provider.Refused, Code: "405"},
		"throttled":                 {Outcome: provider.Throttled, Code: "429"},
		"throttled_retry_after": {
			Outcome: provider.Throttled, Code: "429", RetryAfter: 4 * time.Second,
		},
		"throttled_without_body": {Outcome: provider.Throttled, Code: "429"},
		"server_error":           {Outcome: provider.Unknown, Code: "500"},
		"unavailable":            {Outcome: provider.Unknown, Code: "503"},
		"not_json":               {Outcome: provider.Unknown, Code: "400"},
	}, "caller", "sender", "sender_in_object", "sender_is_no_phone_number",
		"sender_of_another_account")
}

func FuzzClassify(f *testing.F) {
	f.Add(202, []byte(`{"message_uuid":["1"]}`))
	f.Add(400, []byte(`{"error":"dst is not valid"}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}
