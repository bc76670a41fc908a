package telnyx

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAnswersMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	webtest.CheckAnswers(t, "testdata/answers/*.txt", new(api).Classify, map[string]provider.Result{
		"accepted": {
			Outcome: provider.Accepted, Reference: "40385f64-5717-4562-b3fc-2c963f66afa6",
		},
		"accepted_without_id":      {Outcome: provider.Unknown, Code: "200"},
		"accepted_cut":             {Outcome: provider.Unknown, Code: "200"},
		"invalid_recipient":        {Outcome: provider.Rejected, Code: "400/40310"},
		"invalid_recipient_e164":   {Outcome: provider.Rejected, Code: "400/10016"},
		"invalid_number_e164":      {Outcome: provider.Refused, Unfit: true, Code: "400/10016"},
		"invalid_sender_e164":      {Outcome: provider.Refused, Unfit: true, Code: "400/10016"},
		"inactive_number":          {Outcome: provider.Refused, Unfit: true, Code: "400/10001"},
		"inactive_recipient":       {Outcome: provider.Refused, Unfit: true, Code: "400/10001"},
		"profile_disabled":         {Outcome: provider.Refused, Code: "400/40312"},
		"too_long":                 {Outcome: provider.Refused, Unfit: true, Code: "400/40302"},
		"stop":                     {Outcome: provider.Rejected, Code: "400/40300"},
		"sender":                   {Outcome: provider.Refused, Unfit: true, Code: "400/40305"},
		"region":                   {Outcome: provider.Refused, Unfit: true, Code: "400/40309"},
		"credentials":              {Outcome: provider.Refused, Code: "401/10009"},
		"credentials_without_body": {Outcome: provider.Refused, Code: "401"},
		"funds":                    {Outcome: provider.Refused, Code: "403/20100"},
		"unlisted_code":            {Outcome: provider.Refused, Code: "422/10027"},
		"number_code":              {Outcome: provider.Refused, Unfit: true, Code: "400/40322"},
		"unexpected_error":         {Outcome: provider.Unknown, Code: "400/10007"},
		"request_timeout":          {Outcome: provider.Unknown, Code: "422/10008"},
		"request_timeout_second":   {Outcome: provider.Unknown, Code: "400/40305"},
		"throttled_unexpected":     {Outcome: provider.Unknown, Code: "429/10007"},
		"misdirected":              {Outcome: provider.Unknown, Code: "421/10015"},
		"misdirected_known_code":   {Outcome: provider.Unknown, Code: "421/40310"},
		"queue_full":               {Outcome: provider.Throttled, Code: "429/40318"},
		"throttled":                {Outcome: provider.Throttled, Code: "429/10011"},
		"throttled_retry_after": {
			Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 2 * time.Second,
		},
		"throttled_reset": {
			Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 5 * time.Second,
		},
		"throttled_epoch":         {Outcome: provider.Throttled, Code: "429"},
		"spend_limit":             {Outcome: provider.Refused, Code: "429/40333"},
		"server_error":            {Outcome: provider.Unknown, Code: "500/10007"},
		"server_error_known_code": {Outcome: provider.Unknown, Code: "503/40310"},
		"not_json":                {Outcome: provider.Unknown, Code: "400"},
		"no_errors":               {Outcome: provider.Unknown, Code: "400"},
		"code_with_number":        {Outcome: provider.Refused, Code: "400/other"},
	}, "sender", "inactive_number", "invalid_number_e164", "invalid_sender_e164")
}

func TestEveryCodeHasAMeaningAndAReason(t *testing.T) {
	t.Parallel()
	webtest.CheckTable(t, meanings)
}

// TestAccountFaultsAreNotBlamedOnTheMessage: nor is a sender that is refused everywhere one of
// the message.
func TestAccountFaultsAreNotBlamedOnTheMessage(t *testing.T) {
	t.Parallel()
	webtest.CheckBlame(t, meanings, map[web.Blame][]string{
		web.OnChannel: {"20100", "20013", "40312", "40314", "40333", "10009", "40321"},
		web.OnSender:  {"40013", "40100", "40305", "40306", "40315", "40320", "40329"},
		web.OnMessage: {"40009", "40302", "40309", "40319", "40322", "40328"},
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(`{"data":{"id":"1"}}`))
	f.Add(400, []byte(`{"errors":[{"code":"40310","source":{"pointer":"/to"}}]}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}
