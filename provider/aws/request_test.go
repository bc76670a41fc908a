package aws

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/web/webtest"
)

const token = "IQoJb3JpZ2luX2VjEXAMPLETOKEN="

// TestRequestsAreWrittenAsDocumented compares whole requests. The signatures in the files are
// independent of this code: Python's hmac and hashlib computed them as the IAM User Guide describes
// ("Create a signed AWS API request").
func TestRequestsAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings   map[string]any
		submission func(*provider.Submission)
	}{
		"least": {nil, func(s *provider.Submission) { s.From, s.Key = "", "" }},
		"everything": {map[string]any{
			"from": "channel", "configuration_set": "events", "protect_configuration": "protect-1",
			"max_price": "0.10", "message_type": "promotional",
			"country_parameters": map[string]any{"IN_TEMPLATE_ID": "t-5", "IN_ENTITY_ID": 1234},
		}, func(s *provider.Submission) {
			s.Text, s.Validity = "Größe – “5” 🙂 & more=\"1\"\n",
				time.Now().Add(90*time.Second+time.Millisecond)
		}},
		"token": {map[string]any{"session_token_file": "token"}, func(*provider.Submission) {}},
		"elsewhere": {
			map[string]any{"base_url": "https://sms.example.com:443/aws/"},
			func(*provider.Submission) {},
		},
		"plain": {
			map[string]any{"base_url": "http://sms.example.com:80"}, func(*provider.Submission) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // its clock starts at 2000-01-01
				values := channelSettings(test.settings)
				values["sns_certificate_files"] = nil // they are not valid yet at that time
				s := submission()
				test.submission(s)
				r, err := apiOf(open(t, values)).Compose(s)
				if err != nil {
					t.Fatal(err)
				}
				webtest.CheckGolden(t, "testdata/requests/"+name+".txt", r)
			})
		})
	}
}

// TestTheChannelsSenderIsTakenWhereTheMessageHasNone: the sender is the origination identity. If
// neither names one, AWS chooses.
func TestTheChannelsSenderIsTakenWhereTheMessageHasNone(t *testing.T) {
	t.Parallel()
	s := submission()
	s.From = ""
	r, err := apiOf(open(t, channelSettings(map[string]any{"from": "channel"}))).Compose(s)
	if err != nil || !strings.Contains(string(r.Body), `"OriginationIdentity":"channel"`) {
		t.Errorf("error %v", err)
	}
}

// TestOnlyTheAccountsOwnSignatureIsTaken: the test carrier verifies it with the keys and, for
// temporary keys, the token.
func TestOnlyTheAccountsOwnSignatureIsTaken(t *testing.T) {
	t.Parallel()
	temporary, other := account(), account()
	temporary.SessionToken, other.SecretAccessKey = token, "another"
	for name, test := range map[string]struct {
		account awstest.Config
		files   map[string]any
		unread  string
	}{
		"lasting keys":             {account(), nil, ""},
		"temporary keys":           {temporary, map[string]any{"session_token_file": "token"}, ""},
		"temporary keys, no token": {temporary, nil, "InvalidClientTokenId"},
		"another token": {
			temporary, map[string]any{"session_token_file": "old"}, "InvalidClientTokenId",
		},
		"another key": {other, nil, "SignatureDoesNotMatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carrier := webtest.Serve(t, webtest.Config{Protocol: awstest.New(test.account)})
			values := channelSettings(test.files)
			values["base_url"] = carrier.URL()
			r := open(t, values).Send(t.Context(), *submission())
			if got := strings.Join(carrier.Unread(), " "); got != test.unread ||
				(r.Outcome == provider.Accepted) != (test.unread == "") {
				t.Errorf("%v: the account answers %q", r.Outcome, got)
			}
		})
	}
}

func TestWhatAWSCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	c := open(t, channelSettings(nil))
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
	if _, err := apiOf(c).Compose(s); err != nil {
		t.Error(err)
	}
}

func TestValidityStaysWithinWhatAWSKeeps(t *testing.T) {
	t.Parallel()
	c := open(t, channelSettings(nil))
	for validity, want := range map[time.Duration]string{
		-time.Hour: `"TimeToLive":5,`, 96 * time.Hour: `"TimeToLive":259200`,
	} {
		s := submission()
		s.Validity = time.Now().Add(validity)
		r, err := apiOf(c).Compose(s)
		if err != nil {
			t.Fatal(err)
		}
		if body := strings.ReplaceAll(string(r.Body), "}", ",}"); !strings.Contains(body, want) {
			t.Errorf("validity %s is not written as %s", validity, want)
		}
	}
}

// BenchmarkSend measures the cost of a message without the network: writing and signing the
// request, and reading the answer.
func BenchmarkSend(b *testing.B) {
	api, s, answer := apiOf(open(b, channelSettings(nil))), submission(),
		webtest.ReadAnswer(b, "testdata/accepted.http")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := api.Compose(s); err != nil {
			b.Fatal(err)
		}
		if r := api.Classify(answer); r.Outcome != provider.Accepted {
			b.Fatal(r.Err)
		}
	}
}
