package telnyx_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/telnyx"
	"dispatcher/provider/web"
)

var secrets = files(map[string]string{"/key": secret + "\n"})

func text(k ed25519.PrivateKey) string { return base64.StdEncoding.EncodeToString(public(k)) }

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	cfg, err := telnyx.ParseSettings(map[string]any{
		"api_key_file": "/key", "public_key": []any{text(signing), text(other)}, "from": 60777, "messaging_profile_id": "p-1",
	}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Web.BaseURL.String() != "https://api.telnyx.com/v2" {
		t.Errorf("the API begins at %s", cfg.Web.BaseURL)
	}
	cfg.Web = web.Config{}
	want := telnyx.Config{APIKey: secret, PublicKeys: []ed25519.PublicKey{public(signing), public(other)}, From: "60777", Profile: "p-1"}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSettingsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := telnyx.ParseSettings(map[string]any{
		"public_key": "AAAA", "base_url": "ftp://x", "messaging_profile": "p-1",
	}, secrets)
	for _, want := range []string{
		"api_key_file: is missing", "public_key: is not the base64 of 32 bytes", "base_url: is no address",
		"messaging_profile: unknown setting; did you mean messaging_profile_id?",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("a key has two faults: %v", err)
	}
	shown(t, err)
	three := []any{text(signing), text(other), text(signing)}
	if _, err := telnyx.ParseSettings(map[string]any{"api_key_file": "/key", "public_key": three}, secrets); err == nil {
		t.Error("three public keys were taken")
	}
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		callback string
		key      any
		want     bool
	}{{callback, text(signing), true}, {"", text(signing), false}, {callback, nil, false}} {
		channel, err := telnyx.Open(map[string]any{"api_key_file": "/key", "public_key": c.key}, web.Opening{ReadFile: secrets, Callback: c.callback})
		if err != nil {
			t.Fatal(err)
		}
		can := channel.(provider.Capable).Capabilities()
		if can.Receipts != c.want || can.KeyInReceipt != c.want || can.Lookup || can.SameKeyFor != 0 || can.LongestValidity != 0 {
			t.Errorf("with callback %q and key %v it promises %+v", c.callback, c.key, can)
		}
		if err := channel.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
