package smpp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority is a certificate for 127.0.0.1 that signed itself.
type authority struct {
	pem, certPEM, keyPEM []byte
	pair                 tls.Certificate
	pool                 *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "smsc"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"smsc.test"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		pool:    x509.NewCertPool(),
	}
	a.pem = a.certPEM
	if a.pair, err = tls.X509KeyPair(a.certPEM, a.keyPEM); err != nil {
		t.Fatal(err)
	}
	a.pool.AppendCertsFromPEM(a.pem)
	return a
}

// tlsPair returns settings of a server and of a client that trusts it.
func tlsPair(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	a := newAuthority(t)
	return &tls.Config{Certificates: []tls.Certificate{a.pair}, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}
