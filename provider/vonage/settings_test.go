package vonage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"api": "messages", "api_key": apiKey, "application_id": application,
		"private_key_file":       "application.pem",
		"signature_secret_files": []any{"older", "signature"}, "from": 12345,
	}, files().Environment(public))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		APIKey: apiKey, Application: application, PrivateKey: applicationKey(),
		Secrets: []string{older, secret}, From: "12345", Callback: public,
	}
	if diff := cmp.Diff(want, cfg,
		cmpopts.IgnoreFields(Config{}, "Web", "PrivateKey")); diff != "" ||
		!want.PrivateKey.Equal(cfg.PrivateKey) {
		t.Error(diff)
	}
	if got := cfg.Web.BaseURL.String(); got != "https://api.nexmo.com" {
		t.Errorf("base URL %s", got)
	}
}

func TestEachAPIHasItsAddress(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(
		map[string]any{"api": "sms", "api_key": apiKey, "api_secret_file": "secret"},
		files().Environment(public))
	if err != nil || cfg.API != SMS || cfg.Web.BaseURL.String() != "https://rest.nexmo.com" {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestFaultsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"nothing": {
			map[string]any{}, []string{"api_key: is missing", "api_secret_file: is missing"},
		},
		"application without key": {
			map[string]any{"application_id": application}, []string{"private_key_file: is missing"},
		},
		"key without application": {
			map[string]any{"private_key_file": "application.pem"},
			[]string{"application_id: is missing"},
		},
		"broken key": {
			map[string]any{"application_id": application, "private_key_file": "broken.pem"},
			[]string{"private_key_file: holds no RSA private key in PEM form"},
		},
		"application of the SMS API": {
			map[string]any{
				"api": "sms", "application_id": application, "private_key_file": "application.pem",
			},
			[]string{"application_id: belongs to api: messages"},
		},
		"three secrets and a typing error": {
			map[string]any{
				"api": "mail", "api_key": "k", "api_secret_file": "nowhere",
				"signature_secret_files": []any{"a", "b", "c"}, "form": "x",
			},
			[]string{
				"api: ", "api_secret_file: ", "signature_secret_files: ",
				"form: unknown setting; did you mean from?",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSettings(c.values, files().Environment(public))
			webtest.CheckFaults(t, err, c.want, apiSecret, secret)
		})
	}
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"api_key": apiKey, "api_secret_file": "secret", "signature_secret_files": "signature",
	}
	webtest.CheckPromises(t, Open, values, files().Environment(public), "signature_secret_files",
		provider.Capabilities{KeyInReceipt: true, Receipts: true})
	values["api"] = "sms"
	webtest.CheckPromises(t, Open, values, files().Environment(public), "signature_secret_files",
		provider.Capabilities{KeyInReceipt: true, Receipts: true, PartReceipts: true})
}
