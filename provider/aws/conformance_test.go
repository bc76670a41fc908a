package aws_test

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
	"dispatcher/provider/aws"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: func() webtest.Protocol { return awstest.New(account()) },
		Secrets:  []string{secretKey},
		Open: func(t testing.TB,
			reach web.Config) provider.Channel {
			return reaching(t, reach)
		},
		Validity: &webtest.Validity{Pattern: `"TimeToLive":(\d+)`},
	})
}

// reaching makes a channel for an API that is reached like that.
func reaching(t testing.TB, reach web.Config) *aws.Channel {
	t.Helper()
	cfg := parse(t, nil)
	cfg.Web = reach
	return aws.New(cfg)
}

// parse reads the usual settings and some more.
func parse(t testing.TB, more map[string]any) aws.Config {
	t.Helper()
	cfg, err := aws.ParseSettings(settings(more), files().Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestNothingIsTriedAgain has answers after which AWS's own clients send again: throttling, 500,
// 503.
func TestNothingIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]webtest.Protocol{
		"throttled": awstest.New(account()),
		"500":       brokenShape{awstest.New(account()), http.StatusInternalServerError},
		"503":       brokenShape{awstest.New(account()), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carrier := webtest.Serve(t,
				webtest.Config{Protocol: shape, Behaviour: webtest.Behaviour{Throttle: true}})
			c := open(t, settings(map[string]any{"base_url": carrier.URL()}))
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

// brokenShape answers every submit with a status and nothing else.
type brokenShape struct {
	webtest.Protocol
	status int
}

func (b brokenShape) Write(w http.ResponseWriter, _ *webtest.Submit, _ providertest.Answer) {
	w.WriteHeader(b.status)
}

// noKeys is a source of credentials that has none, and says so with a secret.
type noKeys struct{}

func (noKeys) Retrieve(context.Context) (sdk.Credentials, error) {
	return sdk.Credentials{}, errors.New("role " + secretKey)
}

// slowKeys is a source that answers when it is told to. The SDK's cache does not cancel what it
// asks for.
type slowKeys chan struct{}

func (s slowKeys) Retrieve(context.Context) (sdk.Credentials, error) {
	<-s
	return sdk.Credentials{}, errors.New("too late")
}

// briefKeys is a source whose keys are over when they are given, and of which each is another.
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
	c := aws.New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	for _, number := range []string{"1", "2"} {
		r, err := aws.APIOf(c).Compose(submission()) // asks the source as Send does
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
	c := aws.New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	r := c.Send(t.Context(), *submission())
	if r.Outcome != provider.Refused || r.Code != "credentials" ||
		r.Err.Error() != "no credentials of AWS are to be had" {
		t.Errorf("%v %s: %v", r.Outcome, r.Code, r.Err)
	}
}

func TestCredentialsThatComeTooLateAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	cfg := parse(t, map[string]any{"base_url": "http://127.0.0.1:1"})
	slow := make(slowKeys)
	defer close(slow)
	cfg.Credentials = slow
	c := aws.New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	s := submission()
	s.Latest = time.Now().Add(50 * time.Millisecond)
	if r := c.Send(t.Context(), *s); r.Outcome != provider.Refused || r.Code != provider.Late {
		t.Errorf("%v %s: %v", r.Outcome, r.Code, r.Err)
	}
}
