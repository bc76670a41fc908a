package twilio_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/twilio"
	"dispatcher/provider/web"
)

var secrets = files(map[string]string{"/key": secret + "\n", "/token": token + "\n", "/old": "old-token", "/empty": "\n"})

func usual() map[string]any {
	return map[string]any{"account_sid": account, "api_key_sid": keySID, "api_key_secret_file": "/key", "from": "ACME"}
}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	values := usual()
	values["auth_token_file"] = []any{"/token", "/old"}
	values["messaging_service"] = service
	cfg, err := twilio.ParseSettings(values, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.twilio.com" {
		t.Errorf("the API begins at %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := twilio.Config{
		AccountSID: account, KeySID: keySID, KeySecret: secret, AuthTokens: []string{token, "old-token"}, From: "ACME", MessagingService: service,
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := twilio.ParseSettings(map[string]any{
		"account_sid": keySID, "api_key_secret_file": "/none", "auth_token_file": []any{"/token", "/old", "/key"}, "messaging_servce": service,
	}, secrets)
	for _, want := range []string{
		"account_sid: is not AC", "api_key_sid: is missing", "api_key_secret_file: ", "auth_token_file: names 3 files",
		"messaging_servce: unknown setting; did you mean messaging_service?",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("a key has two faults: %v", err)
	}
	shown(t, err)
	values := usual()
	values["auth_token_file"] = "/empty"
	if _, err := twilio.ParseSettings(values, secrets); err == nil {
		t.Error("an empty token was taken")
	}
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		callback string
		token    any
		want     bool
	}{{callback, "/token", true}, {"", "/token", false}, {callback, nil, false}} {
		values := usual()
		values["auth_token_file"] = c.token
		channel, err := twilio.Open(values, web.Opening{ReadFile: secrets, Callback: c.callback})
		if err != nil {
			t.Fatal(err)
		}
		can := channel.(provider.Capable).Capabilities()
		if can.Receipts != c.want || can.KeyInReceipt != c.want || can.Lookup || can.SameKeyFor != 0 {
			t.Errorf("with callback %q and token %v it promises %+v", c.callback, c.token, can)
		}
		if err := channel.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
