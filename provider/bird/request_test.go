package bird

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
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
				r, err := apiOf(open(t, channelSettings(api, nil))).Compose(s)
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
	api := apiOf(open(t, channelSettings("messages", nil)))
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
			t.Errorf("a text of %d bytes is not sent as %s", len(text), want)
		}
	}
}

func TestValidityIsShortenedToWhatBirdKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := apiOf(open(t, channelSettings("messages", nil)))
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
	c := open(t, channelSettings("messages", map[string]any{"signing_key_files": nil}))
	r, err := apiOf(c).Compose(submission())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(r.Body, []byte("reportUrl")) || c.Capabilities().Receipts {
		t.Error("a channel without signing key requests reports")
	}
}

func TestMessagesWithoutSenderAreNotComposed(t *testing.T) {
	t.Parallel()
	s := submission()
	s.From = ""
	if r := open(t, channelSettings("messages", nil)).Send(t.Context(),
		*s); r.Outcome != provider.Refused || r.Code != "uncomposed" {
		t.Errorf("without a sender: %v, %q, %v", r.Outcome, r.Code, r.Err)
	}
	r, err := apiOf(open(t,
		channelSettings("messages", map[string]any{"from": "+3197010240000"}))).Compose(s)
	if err != nil || !bytes.Contains(r.Body, []byte(`"originator":"3197010240000"`)) {
		t.Errorf("the channel's own sender is not used: %v", err)
	}
}
