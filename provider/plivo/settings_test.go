package plivo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

var files = webtest.Files{"/token": token + "\n", "/old": "old-token", "/main": "main-token"}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"auth_id": account, "auth_token_file": []any{"/token", "/old"},
		"main_auth_token_file": "/main", "from": 60777, "log": "number_only",
	}, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.plivo.com/v1" {
		t.Errorf("the base address is %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := Config{
		AuthID: account, AuthTokens: []string{token, "old-token"},
		MainTokens: []string{"main-token"}, From: "60777", Log: "number_only",
		Callback: callback,
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := ParseSettings(map[string]any{
		"auth_id": "XX0123456789ABCDEFGH", "from": "ACME", "powerpack_uuid": "p-1", "log": "never",
		"auth_tokenfile": "x",
	}, files.Environment(""))
	webtest.CheckOnlyFaults(t, err, []string{
		"auth_id: is not MA or SA", "auth_token_file: is missing",
		"powerpack_uuid: stands beside from", `log: "never" is none of`,
		"auth_tokenfile: unknown setting; did you mean auth_token_file?",
	}, token)
}

func TestReceiptsArePromisedOnlyWhereTheyCanCome(t *testing.T) {
	t.Parallel()
	values := map[string]any{"auth_id": account, "auth_token_file": "/token"}
	webtest.CheckPromises(t, Open, values, files.Environment(callback), "",
		provider.Capabilities{KeyInReceipt: true, Receipts: true})
}
