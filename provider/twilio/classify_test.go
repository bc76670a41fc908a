package twilio

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
		"created": {
			Outcome: provider.Accepted, Reference: "SM1f0e8ae6ade43cb3c0ce4525424e404f",
		},
		"created_without_sid":      {Outcome: provider.Unknown, Code: "201"},
		"created_cut":              {Outcome: provider.Unknown, Code: "201"},
		"invalid_number":           {Outcome: provider.Rejected, Code: "400/21211"},
		"unsubscribed":             {Outcome: provider.Rejected, Code: "400/21610"},
		"too_long":                 {Outcome: provider.Refused, Unfit: true, Code: "400/21617"},
		"no_route":                 {Outcome: provider.Refused, Unfit: true, Code: "400/21612"},
		"sender":                   {Outcome: provider.Refused, Unfit: true, Code: "400/21660"},
		"sender_of_no_use_there":   {Outcome: provider.Refused, Unfit: true, Code: "400/21657"},
		"pair_flooded":             {Outcome: provider.Refused, Unfit: true, Code: "429/14107"},
		"region":                   {Outcome: provider.Refused, Unfit: true, Code: "403/21408"},
		"credentials":              {Outcome: provider.Refused, Code: "401/20003"},
		"credentials_without_body": {Outcome: provider.Refused, Code: "401"},
		"unlisted_code":            {Outcome: provider.Refused, Code: "400/21999"},
		"queue_full":               {Outcome: provider.Throttled, Code: "400/21611"},
		"throttled":                {Outcome: provider.Throttled, Code: "429/20429"},
		"throttled_retry_after": {
			Outcome: provider.Throttled, Code: "429/20429", RetryAfter: 3 * time.Second,
		},
		"throttled_without_body":    {Outcome: provider.Throttled, Code: "429"},
		"day_used_up":               {Outcome: provider.Refused, Code: "429/63038"},
		"server_error":              {Outcome: provider.Unknown, Code: "500/20500"},
		"server_error_known_code":   {Outcome: provider.Unknown, Code: "503/21211"},
		"misdirected":               {Outcome: provider.Unknown, Code: "421/20001"},
		"misdirected_known_code":    {Outcome: provider.Unknown, Code: "421/21211"},
		"unavailable":               {Outcome: provider.Unknown, Code: "503"},
		"not_json":                  {Outcome: provider.Unknown, Code: "400"},
		"redirect":                  {Outcome: provider.Unknown, Code: "307"},
		"code_is_no_number":         {Outcome: provider.Unknown, Code: "400"},
		"request_timeout_with_code": {Outcome: provider.Unknown, Code: "408/20408"},
	}, "sender")
}

func TestEveryCodeHasAMeaningAndAReason(t *testing.T) {
	t.Parallel()
	webtest.CheckTable(t, meanings)
}

// TestAccountFaultsAreNotBlamedOnTheMessage: nor is a sender that is refused everywhere one of
// the message.
func TestAccountFaultsAreNotBlamedOnTheMessage(t *testing.T) {
	t.Parallel()
	webtest.CheckBlame(t, meanings, map[web.Blame][]int{
		web.OnChannel: {20003, 20005, 21608, 21609, 21701, 21703, 30002, 63038},
		web.OnSender:  {21212, 21267, 21601, 21606, 21659, 21660, 21661},
		web.OnMessage: {14107, 21266, 21408, 21605, 21612, 21617, 21657},
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(201, []byte(`{"sid":"SM1"}`))
	f.Add(400, []byte(`{"code":21211}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}
