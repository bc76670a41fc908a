package receive

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issued returns a self-signed certificate and its key in PEM form.
func issued(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: der,
	}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func write(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOnlyAVerifiedClientCertificateCounts: a caller without one counts as such, a caller with
// another one is disconnected.
func TestOnlyAVerifiedClientCertificateCounts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := issued(t, "listener")
	caller, callerKey := issued(t, "caller")
	files := TLSFiles{
		Certificate:       write(t, filepath.Join(folder, "cert.pem"), cert),
		Key:               write(t, filepath.Join(folder, "key.pem"), key),
		ClientAuthorities: write(t, filepath.Join(folder, "ca.pem"), caller),
	}
	secure, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	r := setup(t, func(c *WebhookConfig) { c.TLS = secure })
	stranger, strangerKey := issued(t, "caller")
	for _, c := range []struct {
		name      string
		cert, key []byte
		content   bool
		known     bool
	}{{"none", nil, nil, true, false}, {
		"signed by the authority", caller, callerKey, true,
		true,
	}, {"a stranger's", stranger, strangerKey, false, false}} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(cert)
		client := &tls.Config{RootCAs: roots}
		if c.cert != nil {
			pair, err := tls.X509KeyPair(c.cert, c.key)
			if err != nil {
				t.Fatal(err)
			}
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
				error,
			) {
				return &pair, nil
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			r.webhooks.Callback("a"), strings.NewReader("r-1"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Secret", "right")
		before := len(r.listener.callbacks)
		transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		transport.CloseIdleConnections()
		if content := len(r.listener.callbacks) > before; content != c.content || content != (err == nil) {
			t.Errorf("%s: content %v, %v", c.name, content, err)
			continue
		}
		if c.content && r.listener.callbacks[before].Certificate != c.known {
			t.Errorf("%s: certificate %v", c.name, r.listener.callbacks[before].Certificate)
		}
	}
}

// TestARenewedCertificateNeedsNoRestart: a file that is missing for a moment has no effect.
func TestARenewedCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := TLSFiles{Certificate: filepath.Join(folder, "cert.pem"), Key: filepath.Join(folder,
		"key.pem")}
	renew := func() {
		cert, key := issued(t, "listener")
		write(t, files.Certificate, cert)
		write(t, files.Key, key)
	}
	renew()
	pair, now := &keyPair{files: files}, time.Now()
	first, err := pair.get(now)
	if err != nil {
		t.Fatal(err)
	}
	renew()
	if again, err := pair.get(now.Add(pairAge / 2)); err != nil || again != first {
		t.Errorf("read again at once: %v", err)
	}
	second, err := pair.get(now.Add(pairAge))
	if err != nil || second == first {
		t.Errorf("not read again: %v", err)
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	if third, err := pair.get(now.Add(3 * pairAge)); err != nil || third != second {
		t.Errorf("without its file: %v", err)
	}
}

func TestTLSFilesThatCannotBeUsedAreNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := issued(t, "listener")
	good := TLSFiles{
		Certificate: write(t, filepath.Join(folder, "cert.pem"), cert),
		Key:         write(t, filepath.Join(folder, "key.pem"), key),
	}
	for setting, files := range map[string]TLSFiles{
		"DISPATCHER_RECEIPTS_TLS_KEY_FILE": {
			Certificate: good.Certificate,
			Key:         filepath.Join(folder, "none"),
		},
		"DISPATCHER_RECEIPTS_TLS_CLIENT_CA_FILE": {
			Certificate: good.Certificate, Key: good.Key,
			ClientAuthorities: good.Key,
		},
	} {
		if _, err := files.Config(); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("error %v, want one of %s", err, setting)
		}
	}
	if cfg, err := (TLSFiles{}).Config(); cfg != nil || err != nil {
		t.Errorf("no files are %v, %v", cfg, err)
	}
}
