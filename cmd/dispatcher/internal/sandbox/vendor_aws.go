package sandbox

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	"dispatcher/provider/aws/awstest"
)

func awsAccount(s *secrets, callback string) account {
	const region, id = "eu-central-1", "AKIASANDBOX000000000"
	const topic = "arn:aws:sns:" + region + ":000000000000:sandbox"
	keyFile, key := s.text("secret_access_key")
	certificate, signer := snsSigner(s)
	return account{
		shape: awstest.New(awstest.Config{Region: region, AccessKeyID: id, SecretAccessKey: key, Topic: topic, Callback: callback, Key: signer}),
		settings: map[string]any{
			"region": region, "access_key_id": id, "secret_access_key_file": keyFile, "from": "Sandbox", "configuration_set": "sandbox",
			"sns_topics": []string{topic}, "sns_certificate_files": []string{certificate},
		},
	}
}

// Sizes of what the notification service of the sandbox signs with.
const (
	signerBits = 2048
	signerLife = 10 * 365 * 24 * time.Hour
)

// snsSigner returns the file of the certificate that an account's topic signs with, and its key.
func snsSigner(s *secrets) (certificate string, key *rsa.PrivateKey) {
	_, text := s.file("sns_key", func() string {
		fresh, err := rsa.GenerateKey(rand.Reader, signerBits)
		if err != nil {
			s.fail(err)
			return ""
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(fresh)}))
	})
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		s.fail(errors.New("the key of an AWS topic cannot be read; remove its file and that of its certificate"))
		return "", nil
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		s.fail(err)
		return "", nil
	}
	certificate, _ = s.file("sns_certificate", func() string {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.sandbox"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(signerLife),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			s.fail(err)
			return ""
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	})
	return certificate, key
}
