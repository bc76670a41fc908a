package aws

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// topicServer records the requests to SNS.
func topicServer(t *testing.T, status int) (address string, asked *[]url.Values) {
	t.Helper()
	asked = new([]url.Values)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query())
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestSubscriptionsOfOurTopicsAreConfirmedWithOneQuestion(t *testing.T) {
	t.Parallel()
	address, asked := topicServer(t, http.StatusOK)
	c, cfg := open(t, channelSettings(map[string]any{"sns_base_url": address})), account()
	request, err := cfg.Ask(callback, "token-1")
	if err != nil {
		t.Fatal(err)
	}
	said := webtest.MadeCallbackAt(t, request, time.Now())
	if content, err := c.ReadCallback(said); err != nil || content.Receipts != nil ||
		content.Inbound != nil || content.Answer != "" {
		t.Errorf("reading the confirmation: %+v, %v", content, err)
	}
	if len(*asked) != 0 {
		t.Error("ReadCallback made a request")
	}
	if ok, err := c.Confirm(t.Context(), said); !ok || err != nil {
		t.Errorf("confirmed %v: %v", ok, err)
	}
	if len(*asked) != 1 || (*asked)[0].Get("Token") != "token-1" ||
		(*asked)[0].Get("TopicArn") != homeTopic ||
		(*asked)[0].Get("Action") != "ConfirmSubscription" {
		t.Errorf("SNS was asked %v", *asked)
	}
}

func TestOtherSubscriptionsAreNotConfirmed(t *testing.T) {
	t.Parallel()
	address, asked := topicServer(t, http.StatusOK)
	c := open(t, channelSettings(map[string]any{"sns_base_url": address}))
	elsewhere := account()
	elsewhere.Topic = "arn:aws:sns:eu-central-1:999999999999:sms-events"
	forged := account()
	forged.Key = nil
	for name, cfg := range map[string]interface {
		Ask(callback, token string) (*http.Request, error)
	}{"another account's topic": &elsewhere, "unsigned": &forged} {
		request, err := cfg.Ask(callback, "token-1")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := c.Confirm(t.Context(), webtest.MadeCallbackAt(t, request, time.Now())); ok ||
			!errors.Is(err, provider.ErrForged) {
			t.Errorf("%s: confirmed %v, %v", name, ok, err)
		}
	}
	if ok, err := c.Confirm(t.Context(), receiptCallback(t, account(), webtest.Receipt{}, time.Now())); ok ||
		err != nil {
		t.Errorf("an event: confirmed %v, %v", ok, err)
	}
	if len(*asked) != 0 {
		t.Errorf("SNS was asked %v", *asked)
	}
}

func TestAConfirmationThatSNSRefusesIsAnError(t *testing.T) {
	t.Parallel()
	address, _ := topicServer(t, http.StatusForbidden)
	cfg := account()
	request, err := cfg.Ask(callback, "token-1")
	if err != nil {
		t.Fatal(err)
	}
	ok, err := open(t, channelSettings(map[string]any{
		"sns_base_url": address,
	})).Confirm(t.Context(),
		webtest.MadeCallbackAt(t, request, time.Now()))
	if ok || err == nil {
		t.Errorf("confirmed %v: %v", ok, err)
	}
}
