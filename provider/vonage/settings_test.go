package vonage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider/web"
)

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"api": "messages", "api_key": apiKey, "application_id": application, "private_key_file": "application.pem",
		"signature_secret_files": []any{"older", "signature"}, "from": 12345,
	}, readFile)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		APIKey: apiKey, Application: application, PrivateKey: applicationKey(),
		Secrets: []string{"the older s3cret", secret}, From: "12345",
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreFields(Config{}, "Web", "PrivateKey")); diff != "" || !want.PrivateKey.Equal(cfg.PrivateKey) {
		t.Error(diff)
	}
	if got := cfg.Web.BaseURL.String(); got != "https://api.nexmo.com" {
		t.Errorf("base URL %s", got)
	}
}

func TestEachAPIHasItsAddress(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{"api": "sms", "api_key": apiKey, "api_secret_file": "secret"}, readFile)
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
		"nothing": {map[string]any{}, []string{"api_key: is missing", "api_secret_file: is missing"}},
		"application without key": {
			map[string]any{"application_id": application}, []string{"private_key_file: is missing"},
		},
		"key without application": {
			map[string]any{"private_key_file": "application.pem"}, []string{"application_id: is missing"},
		},
		"broken key": {
			map[string]any{"application_id": application, "private_key_file": "broken.pem"},
			[]string{"private_key_file: holds no RSA private key in PEM form"},
		},
		"application of the SMS API": {
			map[string]any{"api": "sms", "application_id": application, "private_key_file": "application.pem"},
			[]string{"application_id: belongs to api: messages"},
		},
		"three secrets and a typing error": {
			map[string]any{"api": "mail", "api_key": "k", "api_secret_file": "nowhere", "signature_secret_files": []any{"a", "b", "c"}, "form": "x"},
			[]string{"api: ", "api_secret_file: ", "signature_secret_files: ", "form: unknown setting; did you mean from?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSettings(c.values, readFile)
			if err == nil {
				t.Fatal("no fault")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestOpenAsksForReceiptsOnlyWithASecretAndAnAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		callback string
		secrets  any
		want     bool
	}{{public, "signature", true}, {"", "signature", false}, {public, nil, false}} {
		channel, err := Open(map[string]any{"api_key": apiKey, "api_secret_file": "secret", "signature_secret_files": c.secrets},
			web.Opening{ReadFile: readFile, Callback: c.callback})
		if err != nil {
			t.Fatal(err)
		}
		got := channel.(*Channel).Capabilities()
		if got.Receipts != c.want || got.KeyInReceipt != c.want || got.Lookup || got.SameKeyFor != 0 || got.LongestValidity != longestValidity {
			t.Errorf("%+v for %+v", got, c)
		}
	}
}
