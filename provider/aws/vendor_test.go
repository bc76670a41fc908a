package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"dispatcher/provider"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: func() webtest.Protocol { return awstest.New(account()) },
		Secrets:  []string{secretKey},
		Open: func(t testing.TB, reach web.Config) provider.Channel {
			return reaching(t, reach)
		},
		Validity: &webtest.Validity{Pattern: `"TimeToLive":(\d+)`},
		Files:    "testdata/*.http", Classify: apiOf(open(t, channelSettings(nil))).Classify,
		OnSender: []string{
			"bad_sender", "bad_number_and_sender", "no_such_sender", "no_identities",
			"no_capability",
		},
		Answers: map[string]provider.Result{
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
		},
	})
}

// reaching returns a channel with this web configuration.
func reaching(t testing.TB, reach web.Config) *Channel {
	t.Helper()
	cfg := parse(t, nil)
	cfg.Web = reach
	return New(cfg)
}

// parse reads the usual settings with additions.
func parse(t testing.TB, more map[string]any) Config {
	t.Helper()
	cfg, err := ParseSettings(channelSettings(more), files().Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestNothingIsTriedAgain covers the answers after which AWS's own clients retry: throttling, 500,
// 503.
func TestNothingIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]webtest.Protocol{
		"throttled": awstest.New(account()),
		"500":       brokenProtocol{awstest.New(account()), http.StatusInternalServerError},
		"503":       brokenProtocol{awstest.New(account()), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carrier := webtest.Serve(t,
				webtest.Config{Protocol: protocol, Behaviour: webtest.Behaviour{Throttle: true}})
			c := open(t, channelSettings(map[string]any{"base_url": carrier.URL()}))
			for range 5 {
				if r := c.Send(t.Context(), *submission()); r.Outcome == provider.Accepted {
					t.Errorf("outcome %v", r.Outcome)
				}
			}
			if n := carrier.Requests(); n != 5 {
				t.Errorf("%d requests for 5 sends", n)
			}
		})
	}
}

// brokenProtocol answers every submit with a status and no body.
type brokenProtocol struct {
	webtest.Protocol
	status int
}

func (b brokenProtocol) Write(w http.ResponseWriter, _ *webtest.Submit, _ providertest.Answer) {
	w.WriteHeader(b.status)
}

// noKeys is a source without credentials whose error contains a secret.
type noKeys struct{}

func (noKeys) Retrieve(context.Context) (sdk.Credentials, error) {
	return sdk.Credentials{}, errors.New("role " + secretKey)
}

// slowKeys is a source that answers when the test lets it. The SDK's cache does not cancel its
// requests.
type slowKeys chan struct{}

func (s slowKeys) Retrieve(context.Context) (sdk.Credentials, error) {
	<-s
	return sdk.Credentials{}, errors.New("too late")
}

// briefKeys is a source whose keys are expired when it returns them. Each call returns other keys.
type briefKeys struct{ given *int }

func (b briefKeys) Retrieve(context.Context) (sdk.Credentials, error) {
	*b.given++
	return sdk.Credentials{
		AccessKeyID: fmt.Sprintf("AKIDBRIEF%d", *b.given), SecretAccessKey: secretKey,
		SessionToken: fmt.Sprintf("token-%d", *b.given), CanExpire: true,
	}, nil
}

func TestTheNextRequestIsSignedWithTheNewKeys(t *testing.T) {
	t.Parallel()
	cfg := parse(t, nil)
	cfg.Credentials = briefKeys{new(int)}
	c := New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	for _, number := range []string{"1", "2"} {
		r, err := apiOf(c).Compose(submission()) // asks the source, as Send does
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDBRIEF"+number+"/") ||
			r.Header.Get("X-Amz-Security-Token") != "token-"+number {
			t.Errorf("request %s is signed with other keys", number)
		}
	}
}

func TestWithoutCredentialsNothingIsSent(t *testing.T) {
	t.Parallel()
	cfg := parse(t, map[string]any{"base_url": "http://127.0.0.1:1"})
	cfg.Credentials = noKeys{}
	c := New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	r := c.Send(t.Context(), *submission())
	if r.Outcome != provider.Refused || r.Code != "credentials" ||
		r.Err.Error() != "no credentials of AWS are available" {
		t.Errorf("%v %s: %v", r.Outcome, r.Code, r.Err)
	}
}

func TestCredentialsThatComeTooLateAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	cfg := parse(t, map[string]any{"base_url": "http://127.0.0.1:1"})
	slow := make(slowKeys)
	defer close(slow)
	cfg.Credentials = slow
	c := New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	s := submission()
	s.Latest = time.Now().Add(50 * time.Millisecond)
	if r := c.Send(t.Context(), *s); r.Outcome != provider.Refused || r.Code != provider.Late {
		t.Errorf("%v %s: %v", r.Outcome, r.Code, r.Err)
	}
}
