package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// TLS reads tls, tls_ca_file, tls_server_name, tls_cert_file and tls_key_file. It returns nil when
// tls is off.
func (r *Reader) TLS() *tls.Config {
	on := r.Flag("tls")
	ca, cert, key, name := r.File("tls_ca_file"), r.File("tls_cert_file"), r.File("tls_key_file"),
		r.Text("tls_server_name")
	if !on {
		if ca != nil || cert != nil || key != nil || name != "" {
			r.Failf("tls", "is off while other tls_ settings are set")
		}
		return nil
	}
	return r.clientTLS(ca, cert, key, name)
}

// ClientTLS is TLS for adapters that always encrypt: it reads the same settings except tls. It
// returns nil if none of them is set.
func (r *Reader) ClientTLS() *tls.Config {
	ca, cert, key, name := r.File("tls_ca_file"), r.File("tls_cert_file"), r.File("tls_key_file"),
		r.Text("tls_server_name")
	if ca == nil && cert == nil && key == nil && name == "" {
		return nil
	}
	return r.clientTLS(ca, cert, key, name)
}

func (r *Reader) clientTLS(ca, cert, key []byte, name string) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			r.Failf("tls_ca_file", "holds no PEM certificate")
		}
	}
	if cert == nil && key == nil {
		return cfg
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.Fail("tls_cert_file", errors.New("is not a PEM certificate that belongs to tls_key_file"))
		return cfg
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}
