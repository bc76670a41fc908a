package plivo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/web"
)

var secrets = files(map[string]string{"/token": token + "\n", "/old": "old-token", "/main": "main-token"})

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	cfg, err := plivo.ParseSettings(map[string]any{
		"auth_id": account, "auth_token_file": []any{"/token", "/old"}, "main_auth_token_file": "/main", "from": 60777, "log": "number_only",
	}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.plivo.com/v1" {
		t.Errorf("the API begins at %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := plivo.Config{AuthID: account, AuthTokens: []string{token, "old-token"}, MainTokens: []string{"main-token"}, From: "60777", Log: "number_only"}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := plivo.ParseSettings(map[string]any{
		"auth_id": "XX0123456789ABCDEFGH", "from": "ACME", "powerpack_uuid": "p-1", "log": "never", "auth_tokenfile": "x",
	}, secrets)
	for _, want := range []string{
		"auth_id: is not MA or SA", "auth_token_file: is missing", "powerpack_uuid: stands beside from", `log: "never" is none of`,
		"auth_tokenfile: unknown setting; did you mean auth_token_file?",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("a key has two faults: %v", err)
	}
	shown(t, err)
}

func TestReceiptsArePromisedOnlyWhereTheyCanCome(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{callback: true, "": false} {
		channel, err := plivo.Open(map[string]any{"auth_id": account, "auth_token_file": "/token"}, web.Opening{ReadFile: secrets, Callback: address})
		if err != nil {
			t.Fatal(err)
		}
		can := channel.(provider.Capable).Capabilities()
		if can.Receipts != want || can.KeyInReceipt != want || can.Lookup || can.SameKeyFor != 0 {
			t.Errorf("with callback %q it promises %+v", address, can)
		}
		if err := channel.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
