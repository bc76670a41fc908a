package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

func TestStatusWebhooksAreReadWithTheirSecrets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, second := []byte(strings.Repeat("a", 24)), []byte(strings.Repeat("b", 32))
	for name, text := range map[string]string{
		"shop.key": "whsec_" + base64.StdEncoding.EncodeToString(first) + "\n",
		"old.key":  "whsec_" + base64.StdEncoding.EncodeToString(second),
		"weak.key": "whsec_" + base64.StdEncoding.EncodeToString(first[:20]),
		"bare.key": base64.StdEncoding.EncodeToString(first),
		"long.key": "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("c", 65))),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(text string) ([]config.StatusWebhook, error) {
		path := filepath.Join(t.TempDir(), "webhooks.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := config.Settings{StatusWebhooksFile: path, SecretsDir: folder}
		return s.StatusWebhooks()
	}
	const shop = "{name: shop, tenant: shop, url: \"https://shop.example.com/sms\", secret_files: "
	got, err := read("webhooks:\n  - " + shop + "[shop.key, old.key], states: [delivered], " +
		"max_age: 2h}\n  - {name: rest, url: \"http://127.0.0.1:80\", allow_private: true, " +
		"secret_files: [old.key]}\n")
	want := []config.StatusWebhook{
		{
			Name: "shop", Tenant: "shop", URL: "https://shop.example.com/sms",
			Secrets: [][]byte{first, second}, States: []string{"delivered"}, MaxAge: 2 * time.Hour,
		},
		{
			Name: "rest", URL: "http://127.0.0.1:80", Secrets: [][]byte{second},
			MaxAge: 24 * time.Hour, AllowPrivate: true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := (&config.Settings{}).StatusWebhooks(); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		shop + "[]}":                        "secret_files is missing",
		shop + "[weak.key]}":                "weak.key is not a secret",
		shop + "[bare.key]}":                "bare.key is not a secret",
		shop + "[long.key]}":                "long.key is not a secret",
		shop + "[shop.key], max_age: 721h}": "max_age is not a duration",
		shop + "[shop.key], states: ['']}":  `state "" is unknown`,
		"{name: a, url: \"https://u:p@x\", secret_files: [shop.key]}": "url is not an https",
		shop + "[none.key]}":              "there is no file none.key",
		shop + "[../x.key]}":              "lies outside of the secrets folder",
		shop + "[], max_ag: 1}":           "max_ag",
		shop + "[shop.key], max_age: 1s}": "max_age is not a duration",
		"{name: \"a b\", url: \"https://x\", secret_files: [shop.key]}":                    "name is not",
		"{name: a, url: \"http://x\", secret_files: [shop.key]}":                           "url is http",
		"{name: a, url: \"x\", secret_files: [shop.key]}":                                  "url is not an https",
		shop + "[shop.key]}\n  - " + shop + "[shop.key]}":                                  "webhook 2 (shop): has the name",
		shop + "[shop.key]}\n  - " + strings.Replace(shop, "shop", "b", 1) + "[shop.key]}": "tenant \"shop\"",
	} {
		if _, err := read("webhooks:\n  - " + text + "\n"); err == nil ||
			!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "DISPATCHER_STATUS_WEBHOOKS_FILE") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
