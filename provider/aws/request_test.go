package aws_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/aws"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/web/webtest"
)

const token = "IQoJb3JpZ2luX2VjEXAMPLETOKEN="

// TestRequestsAreWrittenAsDocumented compares whole requests. The signatures in the files were not
// made by this code: they were computed from the IAM User Guide ("Create a signed AWS API request")
// with the hmac and hashlib of Python.
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
			synctest.Test(t, func(t *testing.T) { // whose clock stands at 2000-01-01
				values := settings(test.settings)
				values["sns_certificate_files"] = nil // they are younger
				s := submission()
				test.submission(s)
				r, err := aws.APIOf(open(t, values)).Compose(s)
				if err != nil {
					t.Fatal(err)
				}
				webtest.CheckGolden(t, "testdata/requests/"+name+".txt", r)
			})
		})
	}
}

// TestTheChannelsSenderIsTakenWhereTheMessageHasNone: it is the origination identity, and without
// either AWS chooses one.
func TestTheChannelsSenderIsTakenWhereTheMessageHasNone(t *testing.T) {
	t.Parallel()
	s := submission()
	s.From = ""
	r, err := aws.APIOf(open(t, settings(map[string]any{"from": "channel"}))).Compose(s)
	if err != nil || !strings.Contains(string(r.Body), `"OriginationIdentity":"channel"`) {
		t.Errorf("error %v", err)
	}
}

// TestOnlyTheAccountsOwnSignatureIsTaken has the account's side verify it, which knows the keys
// and, of temporary ones, the token.
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
			values := settings(test.files)
			values["base_url"] = carrier.URL()
			r := open(t, values).Send(t.Context(), *submission())
			if got := strings.Join(carrier.Unread(), " "); got != test.unread ||
				(r.Outcome == provider.Accepted) != (test.unread == "") {
				t.Errorf("%v: the account says %q", r.Outcome, got)
			}
		})
	}
}
