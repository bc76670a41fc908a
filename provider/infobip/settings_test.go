package infobip

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"base_url": "https://xyz.api.infobip.com", "api_key_file": "key", "from": 12345,
		"callback_secret_files": []any{"secret", "older"},
		"callback_auth":         []any{"url", "basic", "header", "certificate"},
		"callback_user":         "infobip", "callback_header": "x-callback-secret",
		"absence_is_certain": true,
	}, files.Environment(public))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Key: apiKey, From: "12345", Auths: []Auth{ByURL, ByBasic, ByHeader, ByCertificate},
		Secrets: []string{secret, older},
		User:    "infobip", Header: "X-Callback-Secret", AbsenceIsCertain: true, Callback: public,
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreFields(Config{}, "Web")); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAloneMeanProofsInAddresses(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"base_url": "https://xyz.api.infobip.com", "api_key_file": "key",
		"callback_secret_files": "secret",
	}, files.Environment(""))
	if err != nil || !cmp.Equal(cfg.Auths, []Auth{ByURL}) {
		t.Errorf("%v, %v", cfg.Auths, err)
	}
	cfg, err = ParseSettings(
		map[string]any{"base_url": "https://xyz.api.infobip.com", "api_key_file": "key"},
		files.Environment(public))
	if err != nil || cfg.acceptsCallbacks() {
		t.Errorf("accepts callbacks without a way to verify them: %v", err)
	}
}

func TestFaultsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"nothing": {
			map[string]any{}, []string{"base_url: is missing", "api_key_file: is missing"},
		},
		"unknown way": {
			map[string]any{"callback_auth": "hope"}, []string{"callback_auth: \"hope\" is none of"},
		},
		"basic alone": {
			map[string]any{"callback_auth": "basic"},
			[]string{"callback_secret_files: is missing", "callback_user: "},
		},
		"header alone": {
			map[string]any{"callback_auth": "header", "callback_secret_files": "secret"},
			[]string{"callback_header: "},
		},
		"user without way": {
			map[string]any{"callback_secret_files": "secret", "callback_user": "x"},
			[]string{"callback_user: "},
		},
		"unused secret": {
			map[string]any{"callback_auth": "certificate", "callback_secret_files": "secret"},
			[]string{"callback_secret_files: is not used"},
		},
		"typing error": {
			map[string]any{"api_key_fil": "key"},
			[]string{"api_key_fil: unknown setting; did you mean api_key_file?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSettings(c.values, files.Environment(""))
			webtest.CheckFaults(t, err, c.want, apiKey, secret)
		})
	}
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"base_url": "https://xyz.api.infobip.com", "api_key_file": "key",
		"callback_secret_files": "secret",
	}
	webtest.CheckPromises(t, Open, values, files.Environment(public), "callback_secret_files",
		provider.Capabilities{LookupFor: 47 * time.Hour, KeyInReceipt: true, Receipts: true})
}
