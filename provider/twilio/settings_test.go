package twilio

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

var files = webtest.Files{
	"/key": secret + "\n", "/token": token + "\n", "/old": "old-token", "/empty": "\n",
}

func usualSettings() map[string]any {
	return map[string]any{
		"account_sid": account, "api_key_sid": keySID, "api_key_secret_file": "/key",
		"from": "ACME",
	}
}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	values := usualSettings()
	values["auth_token_file"] = []any{"/token", "/old"}
	values["messaging_service"] = service
	cfg, err := ParseSettings(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.twilio.com" {
		t.Errorf("the base address is %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := Config{
		AccountSID: account, KeySID: keySID, KeySecret: secret,
		AuthTokens: []string{token, "old-token"}, From: "ACME", MessagingService: service,
		Callback: callback,
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := ParseSettings(map[string]any{
		"account_sid": keySID, "api_key_secret_file": "/none",
		"auth_token_file": []any{"/token", "/old", "/key"}, "messaging_servce": service,
	}, files.Environment(""))
	webtest.CheckOnlyFaults(t, err, []string{
		"account_sid: is not AC", "api_key_sid: is missing", "api_key_secret_file: ",
		"auth_token_file: names 3 files",
		"messaging_servce: unknown setting; did you mean messaging_service?",
	}, secret, token)
	values := usualSettings()
	values["auth_token_file"] = "/empty"
	if _, err := ParseSettings(values, files.Environment(callback)); err == nil {
		t.Error("an empty token was accepted")
	}
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	values := usualSettings()
	values["auth_token_file"] = "/token"
	webtest.CheckPromises(t, Open, values, files.Environment(callback), "auth_token_file",
		provider.Capabilities{KeyInReceipt: true, Receipts: true})
}
