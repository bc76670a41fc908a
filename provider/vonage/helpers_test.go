package vonage

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apiKey      = "abcd1234"
	apiSecret   = "vonage-api-s3cret"
	secret      = "vonage-signature-s3cret"
	application = "78d335fa-323d-0114-9c3d-d6f0d48968cf"
	key         = "0123456789abcdef0123456789abcdef"
	recipient   = "+447700900123"
	public      = "https://sms.example.com/receipts/vonage"
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// applicationKey is made once: keys are dear.
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

// readFile knows the files that settings of tests name.
func readFile(path string) ([]byte, error) {
	switch path {
	case "secret":
		return []byte(apiSecret + "\n"), nil
	case "signature":
		return []byte(secret + "\n"), nil
	case "older":
		return []byte("the older s3cret"), nil
	case "application.pem":
		return []byte(pemOf(applicationKey())), nil
	case "broken.pem":
		return []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
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
			map[string]any{"api_key": apiKey, "application_id": application, "private_key_file": "application.pem"}, app,
		},
		"SMS API": {map[string]any{"api": "sms", "api_key": apiKey, "api_secret_file": "secret"}, short},
	}
}

// parse reads settings for an API at address.
func parse(t testing.TB, v variant, address string, more map[string]any) Config {
	t.Helper()
	values := map[string]any{
		"signature_secret_files": []any{"older", "signature"}, "from": "ACME",
		"base_url": address, "allow_private": true, "timeout": "1m", "connect_timeout": "1m",
	}
	maps.Copy(values, v.settings)
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, readFile)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, filepath.Join("testdata", "answers", name+".http"))
}
