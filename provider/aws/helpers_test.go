package aws

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	accessKeyID = "AKIDEXAMPLE"
	secretKey   = "wJalrXUtnFEMI-hunter2x"
	secret      = "callback-hunter2x"
	homeRegion  = "eu-central-1"
	homeTopic   = "arn:aws:sns:eu-central-1:111122223333:sms-events"
	callback    = "https://sms.example.com/receipts/aws"
	key         = "000102030405060708090a0b0c0d0e0f"
)

// signer is a certificate in the form that SNS uses.
type signer struct {
	key *rsa.PrivateKey
	pem []byte
}

// signers returns SNS's current certificate and another one.
var signers = sync.OnceValue(func() [2]signer {
	var list [2]signer
	for i := range list {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"},
			NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
		if err != nil {
			panic(err)
		}
		list[i] = signer{k, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	}
	return list
})

// files returns the files that the tests' settings name.
func files() webtest.Files {
	return webtest.Files{
		"key": secretKey + "\n", "token": token + "\n", "secret": secret, "old": "0ld-hunter2x",
		"no certificate": "-----BEGIN CERTIFICATE-----",
		"certificate":    string(signers()[0].pem), "other certificate": string(signers()[1].pem),
	}
}

func channelSettings(more map[string]any) map[string]any {
	values := map[string]any{
		"region": homeRegion, "access_key_id": accessKeyID, "secret_access_key_file": "key",
		"allow_private":         true,
		"sns_topics":            homeTopic,
		"sns_certificate_files": []any{"other certificate", "certificate"},
	}
	maps.Copy(values, more)
	return values
}

func open(t testing.TB, values map[string]any) *Channel {
	t.Helper()
	c, err := Open(values, files().Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c.(*Channel)
}

func account() awstest.Config {
	return awstest.Config{
		Region: homeRegion, AccessKeyID: accessKeyID, SecretAccessKey: secretKey, Topic: homeTopic,
		Callback: callback, Key: signers()[0].key,
	}
}

func submission() *provider.Submission {
	return &provider.Submission{
		ID: "order-7731", Attempt: 1, Key: key, To: "+447700900123", From: "ACME",
		Text: "Your code is 123456",
	}
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

// apiOf returns the API of a channel that has credentials.
func apiOf(c *Channel) web.API {
	_ = c.keys.refresh(context.Background())
	return newAPI(c.cfg, c.keys)
}
