package vonage

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"sync"
	"testing"
	"time"

	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	apiKey      = "abcd1234"
	apiSecret   = "vonage-api-s3cret"
	secret      = "vonage-signature-s3cret"
	older       = "the older s3cret"
	application = "78d335fa-323d-0114-9c3d-d6f0d48968cf"
	key         = webtest.Key
	recipient   = webtest.Recipient
	public      = "https://sms.example.com/receipts/vonage"
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// applicationKey is made once because making one is slow.
var applicationKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func pemOf(k *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// files are those that settings of tests name.
func files() webtest.Files {
	return webtest.Files{
		"secret": apiSecret + "\n", "signature": secret + "\n", "older": older,
		"application.pem": pemOf(applicationKey()),
		"broken.pem":      "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	}
}

// variant is one of the ways in which Vonage is used.
type variant struct {
	settings map[string]any
	server   vonagetest.Config
}

func variants() map[string]variant {
	account := vonagetest.Config{APIKey: apiKey, APISecret: apiSecret, Secret: secret}
	short, app := account, account
	short.SMS = true
	app.Application, app.PublicKey = application, &applicationKey().PublicKey
	return map[string]variant{
		"Messages API": {map[string]any{"api_key": apiKey, "api_secret_file": "secret"}, account},
		"Messages API of an application": {
			map[string]any{
				"api_key": apiKey, "application_id": application,
				"private_key_file": "application.pem",
			}, app,
		},
		"SMS API": {
			map[string]any{"api": "sms", "api_key": apiKey, "api_secret_file": "secret"}, short,
		},
	}
}

// open makes a channel of settings, with a callback.
func open(
	t testing.TB, v variant, reach web.Config, callback string, more map[string]any,
) *Channel {
	t.Helper()
	values := map[string]any{
		"signature_secret_files": []any{"older", "signature"}, "from": "ACME",
		"base_url": reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
		"connect_timeout": "1m",
	}
	maps.Copy(values, v.settings)
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, files().Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web.TLS, cfg.Web.Dial = reach.TLS, reach.Dial
	return New(cfg)
}

// play brings up a carrier, a channel and an ear.
func play(t *testing.T, v variant, more map[string]any) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{
			Protocol: vonagetest.New(v.server), Behaviour: webtest.Behaviour{Receipts: true},
		}
	}, func(reach web.Config, callback string) *Channel {
		return open(t, v, reach, callback,
			more)
	})
}
