package receive

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLSFiles are PEM files of the listener.
type TLSFiles struct {
	Certificate, Key string
	// ClientAuthorities are the CAs of callers' certificates; empty asks for no certificate. A caller
	// without one is accepted: the adapter of a channel checks whether it needs one, see
	// provider.Callback.Certificate.
	ClientAuthorities string
}

// Config reads the files. It returns nil when none is named. The certificate and its key are read
// again later, so that a renewal needs no restart; the authorities are not.
func (f TLSFiles) Config() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil //nolint:nilnil // No file is no TLS.
	}
	pair := &keyPair{files: f}
	if _, err := pair.get(time.Now()); err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return pair.get(time.Now())
		},
	}
	if f.ClientAuthorities == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(f.ClientAuthorities)
	if err != nil {
		return nil, fmt.Errorf("DISPATCHER_RECEIPTS_TLS_CLIENT_CA_FILE: %w; correct the path or "+
			"its permissions", err)
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !cfg.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("DISPATCHER_RECEIPTS_TLS_CLIENT_CA_FILE: the file holds no " +
			"certificate in PEM form; write one into it")
	}
	return cfg, nil
}

// pairAge is how old a key pair may be before its files are read again.
const pairAge = time.Minute

// keyPair caches a certificate with its key. It is safe for concurrent use.
type keyPair struct {
	files TLSFiles

	mu   sync.Mutex
	pair *tls.Certificate // guarded by mu
	read time.Time        // guarded by mu
}

// get returns the pair. If the files cannot be read any more, it returns the last one.
func (k *keyPair) get(now time.Time) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pair != nil && now.Sub(k.read) < pairAge {
		return k.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(k.files.Certificate, k.files.Key)
	switch {
	case err == nil:
		k.pair = &pair
	case k.pair == nil:
		return nil, fmt.Errorf("DISPATCHER_RECEIPTS_TLS_CERT_FILE and "+
			"DISPATCHER_RECEIPTS_TLS_KEY_FILE: %w; name a certificate and its key in PEM form", err)
	}
	k.read = now
	return k.pair, nil
}
