package telnyx

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

var files = webtest.Files{"/key": secret + "\n"}

func text(k ed25519.PrivateKey) string { return base64.StdEncoding.EncodeToString(public(k)) }

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"api_key_file": "/key", "public_key": []any{text(signing), text(other)}, "from": 60777,
		"messaging_profile_id": "p-1",
	}, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.telnyx.com/v2" {
		t.Errorf("the base address is %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := Config{
		APIKey: secret, PublicKeys: []ed25519.PublicKey{public(signing), public(other)},
		From: "60777", Profile: "p-1", Callback: callback,
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := ParseSettings(map[string]any{
		"public_key": "AAAA", "base_url": "ftp://x", "messaging_profile": "p-1",
	}, files.Environment(""))
	webtest.CheckOnlyFaults(t, err, []string{
		"api_key_file: is missing", "public_key: is not the base64 of 32 bytes",
		"base_url: is not an address",
		"messaging_profile: unknown setting; did you mean messaging_profile_id?",
	}, secret)
	_, err = ParseSettings(map[string]any{
		"api_key_file": "/key", "public_key": []any{text(signing), text(other), text(signing)},
	}, files.Environment(""))
	webtest.CheckFaults(t, err, []string{"public_key: lists 3 keys"}, secret)
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	values := map[string]any{"api_key_file": "/key", "public_key": text(signing)}
	webtest.CheckPromises(t, Open, values, files.Environment(callback), "public_key",
		provider.Capabilities{KeyInReceipt: true, Receipts: true})
}
