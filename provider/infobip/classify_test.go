package infobip

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestEveryRecordedAnswerIsClassified(t *testing.T) {
	t.Parallel()
	webtest.CheckAnswers(t, "testdata/answers/*.http", api{}.Classify, map[string]provider.Result{
		"accepted":                   {Outcome: provider.Accepted, Reference: key},
		"enroute":                    {Outcome: provider.Accepted, Reference: key},
		"accepted_without_id":        {Outcome: provider.Unknown, Code: "200/26"},
		"accepted_without_status":    {Outcome: provider.Unknown, Code: "200/0"},
		"accepted_cut_short":         {Outcome: provider.Unknown, Code: "200"},
		"no_messages":                {Outcome: provider.Unknown, Code: "200"},
		"two_messages":               {Outcome: provider.Unknown, Code: "200"},
		"rejected_destination":       {Outcome: provider.Rejected, Code: "200/52"},
		"rejected_prefix":            {Outcome: provider.Refused, Unfit: true, Code: "200/8"},
		"rejected_blocklisted":       {Outcome: provider.Refused, Unfit: true, Code: "200/14"},
		"rejected_fraud":             {Outcome: provider.Refused, Unfit: true, Code: "200/87"},
		"undeliverable_by_operator":  {Outcome: provider.Unknown, Code: "200/4"},
		"rejected_dnd":               {Outcome: provider.Rejected, Code: "200/10"},
		"rejected_credits":           {Outcome: provider.Refused, Code: "200/12"},
		"rejected_source":            {Outcome: provider.Refused, Unfit: true, Code: "200/11"},
		"rejected_system_error":      {Outcome: provider.Refused, Code: "200/21"},
		"rejected_duplicate":         {Outcome: provider.Unknown, Code: "200/23"},
		"rejected_in_a_new_way":      {Outcome: provider.Refused, Code: "200/777"},
		"not_sent":                   {Outcome: provider.Refused, Code: "200/31"},
		"undeliverable_in_a_new_way": {Outcome: provider.Unknown, Code: "200/778"},
		"expired":                    {Outcome: provider.Unknown, Code: "200/15"},
		"bad_recipient":              {Outcome: provider.Rejected, Code: "400/E400"},
		"bad_text":                   {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
		"bad_sender":                 {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
		"bad_sender_and_text":        {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
		"bad_sender_and_webhook":     {Outcome: provider.Refused, Code: "400/E400"},
		"bad_recipient_and_text":     {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
		"bad_recipient_and_webhook":  {Outcome: provider.Refused, Code: "400/E400"},
		"bad_content_type":           {Outcome: provider.Refused, Code: "400/E400"},
		"bad_other_field":            {Outcome: provider.Refused, Code: "400/E400"},
		"bad_message_id":             {Outcome: provider.Refused, Code: "400/E400"},
		"bad_transliteration":        {Outcome: provider.Refused, Code: "400/E400"},
		"rejected_too_long":          {Outcome: provider.Refused, Unfit: true, Code: "200/25"},
		"bad_webhook":                {Outcome: provider.Refused, Code: "400/E400"},
		"bad_request_in_html":        {Outcome: provider.Unknown, Code: "400"},
		"unauthorized":               {Outcome: provider.Refused, Code: "401/E401"},
		"forbidden":                  {Outcome: provider.Refused, Code: "403/E403"},
		"not_found":                  {Outcome: provider.Refused, Code: "404"},
		"rate_limited": {
			Outcome: provider.Throttled, Code: "429/E429", RetryAfter: 4 * time.Second,
		},
		"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429"},
		"internal_error":            {Outcome: provider.Unknown, Code: "500/E500"},
		"unavailable":               {Outcome: provider.Unknown, Code: "503"},
	}, "bad_sender", "bad_sender_and_text", "rejected_source")
}

func TestEveryStatusHasAMeaningAndAReason(t *testing.T) {
	t.Parallel()
	webtest.CheckTable(t, rejections)
}

// TestAccountFaultsAreNotBlamedOnTheMessage: nor is a sender that is refused everywhere one of
// the message.
func TestAccountFaultsAreNotBlamedOnTheMessage(t *testing.T) {
	t.Parallel()
	webtest.CheckBlame(t, rejections, map[web.Blame][]int{
		web.OnChannel: {12, 17, 18, 19, 21, 24, 31, 100}, web.OnSender: {11, 13},
		web.OnMessage: {6, 8, 14, 20, 25, 87},
	})
}

// TestARejectionIsWhatTheTableSays: and one that is not in it is about the channel.
func TestARejectionIsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	for id, want := range rejections {
		if v, ok := (status{GroupID: groupRejected, ID: id}).meaning(); !ok || v != want {
			t.Errorf("%d: %+v, %t", id, v, ok)
		}
	}
	if v, ok := (status{GroupID: groupRejected, ID: 777}).meaning(); !ok ||
		v.Outcome != provider.Refused || v.Blame != web.OnChannel {
		t.Errorf("777: %v, on %v, %t", v.Outcome, v.Blame, ok)
	}
}
