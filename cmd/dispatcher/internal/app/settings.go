package app

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider/smpp"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// Awaits is how long receipts of a channel are expected; 0 when none are. If the document does not
// mention receipts, an SMPP channel expects those that it requests by registered_delivery, and a
// sandbox channel none, so that it is as fast as possible.
func Awaits(c *config.Channel) time.Duration {
	wait := c.Receipts.Wait()
	if wait == 0 || c.Test || c.Receipts.Within > 0 || c.Active.UntilReceipt() {
		return wait
	}
	switch c.Provider {
	case "sandbox":
		return 0
	case "smpp":
		cfg, err := smpp.ParseSettings(c.Settings, substitutes(c.Settings))
		if err == nil && !cfg.Capabilities().Receipts {
			return 0
		}
	}
	return wait
}

// adapt fills in what the pipeline must know of a channel's adapter: how many submits it can have
// in flight, which its windows or connections limit, how it splits texts, and which senders it can
// write.
func adapt(channel *config.Channel, out *decide.Channel) {
	out.Concurrency, out.Segments, out.Cut = sandboxWindow, nil, nil
	switch {
	case channel.Provider == "sandbox":
		out.Cut = cutter(channel, smpp.Config{}) // no setting of a sandbox changes it
		out.Writes = new(smpp.Config).Writes
		return
	case Webbed(channel.Provider):
		out.Concurrency, out.Segments = web.Concurrency(channel.Settings), counter(channel.Provider)
		return
	}
	cfg, err := smpp.ParseSettings(channel.Settings, substitutes(channel.Settings))
	if err != nil {
		return // connect reports what is wrong with them
	}
	out.Concurrency = max(cfg.Binds, 1) * cmp.Or(cfg.Window, smpp.DefaultWindow)
	out.Cut, out.Writes = cutter(channel, cfg), cfg.Writes
	if cfg.Alphabet != smpp.GSM7 || cfg.LongMessages == smpp.UDH16 || !cfg.Tables.None() {
		out.Segments = cfg.Segments
	}
	if !cfg.Tables.None() {
		rules := sms.Rules{Tables: cfg.Tables}
		if cfg.LongMessages == smpp.UDH16 {
			rules.Reference = sms.Reference16
		}
		out.Substitute = rules.Substitute
	}
}

// cutter identifies how an SMPP channel splits texts, for messages of which only some parts were
// accepted; nil for a test channel.
func cutter(channel *config.Channel, cfg smpp.Config) func(text string) string {
	if channel.Test {
		return nil
	}
	cfg.Kind = channel.Provider
	return cfg.Cut
}

// Overlong is a warning that a channel's response_timeout has no effect, because
// DISPATCHER_SEND_TIMEOUT, which counts from the claim, always ends first; empty if it has an
// effect. It is not an error, because one is a setting of the process and the other of the
// document.
func Overlong(channel *config.Channel, sendTimeout time.Duration) string {
	if channel.Provider != "smpp" || sendTimeout <= 0 {
		return ""
	}
	cfg, err := smpp.ParseSettings(channel.Settings, substitutes(channel.Settings))
	if err != nil || cfg.ResponseTimeout < sendTimeout {
		return "" // connect reports what is wrong with them
	}
	return fmt.Sprintf(
		"response_timeout %s has no effect on submits: DISPATCHER_SEND_TIMEOUT of %s ends every "+
			"wait for an answer before",
		cfg.ResponseTimeout,
		sendTimeout,
	)
}

// substitutes returns placeholder content for each file that SMPP settings name: a password for
// password_file, and a certificate with its key for all others.
func substitutes(settings map[string]any) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if file == settings["password_file"] {
			return []byte("-"), nil
		}
		return certificate()
	}
}

// webSubstitutes is substitutes for the settings of an HTTP API: a certificate for each TLS file,
// and a secret on one line for all others.
func webSubstitutes(settings map[string]any) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		for _, key := range []string{"tls_ca_file", "tls_cert_file", "tls_key_file"} {
			if file == settings[key] {
				return certificate()
			}
		}
		return []byte("a-secret-as-a-substitute"), nil
	}
}

// certificate is a certificate in PEM form with its key; it only has to be readable.
var certificate = sync.OnceValues(func() ([]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
})
