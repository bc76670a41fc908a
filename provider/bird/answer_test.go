package bird_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/bird"
	"dispatcher/provider/web/webtest"
)

func submission() *provider.Submission {
	return &provider.Submission{
		ID: "order-7731", Attempt: 1, Key: key, To: "+447700900123", From: "ACME",
		Text: "Your code is 123456",
	}
}

func TestRequestsAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"messages", "channels"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile("testdata/" + api + "_request.json")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s := submission()
				s.Validity = time.Now().Add(10 * time.Minute)
				r, err := bird.APIOf(open(t, settings(api, nil))).Compose(s)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(r.Body, bytes.TrimSpace(want)) {
					t.Errorf("body\n%s\nwant\n%s", r.Body, want)
				}
				if r.Header.Get("Authorization") != "AccessKey "+accessKey ||
					r.Header.Get("Content-Type") != "application/json" {
					t.Error("the access key or the content type is missing")
				}
			})
		})
	}
}

func TestTextsGoOutInTheAlphabetTheyAreCountedIn(t *testing.T) {
	t.Parallel()
	api := bird.APIOf(open(t, settings("messages", nil)))
	for text, want := range map[string]string{
		"plain @£€": `"plain"`, "Привет": `"unicode"`, "curly ’": `"unicode"`,
	} {
		s := submission()
		s.Text = text
		r, err := api.Compose(s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(r.Body), `"datacoding":`+want) {
			t.Errorf("a text of %d bytes does not go out as %s", len(text), want)
		}
	}
}

func TestValidityIsShortenedToWhatBirdKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := bird.APIOf(open(t, settings("messages", nil)))
		for validity, want := range map[time.Duration]string{
			1500 * time.Millisecond: `"validity":2`, -time.Hour: `"validity":1`,
			96 * time.Hour: `"validity":172800`,
		} {
			s := submission()
			s.Validity = time.Now().Add(validity)
			r, err := api.Compose(s)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(r.Body, []byte(want)) {
				t.Errorf("validity %s is not written as %s", validity, want)
			}
		}
	})
}

func TestReportsAreAskedForOnlyWhereTheyCanBeVerified(t *testing.T) {
	t.Parallel()
	c := open(t, settings("messages", map[string]any{"signing_key_files": nil}))
	r, err := bird.APIOf(c).Compose(submission())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(r.Body, []byte("reportUrl")) || c.Capabilities().Receipts {
		t.Error("a channel without signing key asks for reports")
	}
}

func TestMessagesWithoutSenderAreNotComposed(t *testing.T) {
	t.Parallel()
	s := submission()
	s.From = ""
	if r := open(t, settings("messages", nil)).Send(t.Context(),
		*s); r.Outcome != provider.Refused || r.Code != "uncomposed" {
		t.Errorf("without a sender: %v, %q, %v", r.Outcome, r.Code, r.Err)
	}
	r, err := bird.APIOf(open(t,
		settings("messages", map[string]any{"from": "+3197010240000"}))).Compose(s)
	if err != nil || !bytes.Contains(r.Body, []byte(`"originator":"3197010240000"`)) {
		t.Errorf("the channel's own sender is not used: %v", err)
	}
}

func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	onSender := map[string][]string{
		"messages": {"bad_originator"}, "channels": {"bad_sender", "bad_receiver_and_sender"},
	}
	for api, want := range map[string]map[string]provider.Result{
		"messages": {
			"accepted": {
				Outcome: provider.Accepted, Reference: "e8077d803532c0b5937c639b60216938",
			},
			"accepted_with_errors": {Outcome: provider.Unknown, Code: "201/unreadable"},
			"without_id":           {Outcome: provider.Unknown, Code: "201/unreadable"},
			"wrong_key":            {Outcome: provider.Refused, Code: "401/2"},
			"no_balance":           {Outcome: provider.Refused, Code: "402/25"},
			"bad_recipient":        {Outcome: provider.Rejected, Code: "422/10"},
			"bad_body":             {Outcome: provider.Refused, Unfit: true, Code: "422/10"},
			"misdirected":          {Outcome: provider.Unknown, Code: "421/10"},
			"bad_originator":       {Outcome: provider.Refused, Unfit: true, Code: "422/10"},
			"not_found":            {Outcome: provider.Refused, Code: "404/98"},
			"slow_down_when": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 7 * time.Second,
			},
			"slow_down":         {Outcome: provider.Throttled, Code: "429/7"},
			"internal_error":    {Outcome: provider.Unknown, Code: "500/99"},
			"bad_gateway":       {Outcome: provider.Unknown, Code: "502"},
			"malformed":         {Outcome: provider.Unknown, Code: "201/unreadable"},
			"malformed_refusal": {Outcome: provider.Unknown, Code: "422"},
			"redirect":          {Outcome: provider.Unknown, Code: "302"},
		},
		"channels": {
			"accepted": {
				Outcome: provider.Accepted, Reference: "0191f0c5-5c0e-7b0a-a8a0-3f449ad95352",
			},
			"bad_receiver": {Outcome: provider.Rejected, Code: "422/InvalidPayload"},
			"bad_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"bad_receiver_and_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"bad_body": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"invalid_without_details": {Outcome: provider.Refused, Code: "422/InvalidPayload"},
			"number_as_code":          {Outcome: provider.Refused, Code: "422"},
			"slow_down":               {Outcome: provider.Throttled, Code: "429/TooManyRequests"},
			"forbidden":               {Outcome: provider.Refused, Code: "403/Forbidden"},
			"slow_down_when": {
				Outcome: provider.Throttled, Code: "429/TooManyRequests",
				RetryAfter: 3 * time.Second,
			},
			"unavailable": {Outcome: provider.Unknown, Code: "503"},
			"malformed":   {Outcome: provider.Unknown, Code: "202/unreadable"},
		},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			webtest.CheckAnswers(t, "testdata/"+api+"_*.http",
				bird.APIOf(open(t, settings(api, nil))).Classify, want, onSender[api]...)
		})
	}
}
