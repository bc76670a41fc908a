package httpapi_test

import (
	"maps"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/httpapi/httpapitest"
	"dispatcher/provider/web/webtest"
)

const (
	password = "hunter2x"
	secret   = "callback-hunter2x"
	callback = "https://sms.example.com/receipts/gateway"
	key      = "000102030405060708090a0b0c0d0e0f"
)

// files replaces the disk.
var files = webtest.Files{
	"kannel-password": password + "\n", "clicksend-api-key": password,
	"kannel-callback": secret + "\n", "clicksend-callback": secret,
	"password": password, "secret": secret, "old": "0ld-hunter2x", "odd": "a%&b hunter2x",
	"empty": "\n", "two": "a\nb",
}

// document returns one of testdata's documents with additions.
func document(t testing.TB, name string, more map[string]any) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := parse(t, string(text))
	values["allow_private"] = true
	maps.Copy(values, more)
	return values
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func open(t testing.TB, values map[string]any) *httpapi.Channel {
	t.Helper()
	c, err := httpapi.Open(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c.(*httpapi.Channel)
}

// account is the gateway's side of a document.
func account(name string) httpapitest.Config {
	if name == "clicksend" {
		return httpapitest.Config{
			Gateway: httpapitest.ClickSend, User: "ops@example.com", Password: password,
			Secret: secret, Callback: callback,
		}
	}
	return httpapitest.Config{
		Gateway: httpapitest.Kannel, User: "dispatcher", Password: password, Secret: secret,
	}
}

func submission() *provider.Submission {
	return &provider.Submission{
		ID: "order-7731", Attempt: 1, Key: key, To: "+447700900123", From: "ACME",
		Text: "Your code is 123456",
	}
}
