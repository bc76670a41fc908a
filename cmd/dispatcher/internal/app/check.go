package app

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"dispatcher/config"
	"dispatcher/provider/smpp"
	"dispatcher/provider/web"
)

// CheckChannels reports the settings that adapters would refuse, each with its key. Name is that of the
// document, for the error sentences. The files that settings name are not read: they lie
// where dispatchers run, which need not be here. Names that lead out of every secrets folder are reported.
func CheckChannels(name string, doc *config.Routing) error {
	return errors.Join(checkChannels(name, doc.Channels, checkUnread), checkTokens(name, doc.Routes))
}

// checkTokens reports scoring functions whose token lies outside of every secrets folder.
func checkTokens(document string, routes []config.Route) error {
	var problems []error
	for i := range routes {
		f := routes[i].Scoring.Function
		if f == nil {
			continue
		}
		if err := config.LocalSecret(f.TokenFile); f.TokenFile != "" && err != nil {
			problems = append(problems, fmt.Errorf("%s: route %s: scoring.token_file: %w", document, routes[i].Name, err))
		}
	}
	return errors.Join(problems...)
}

// checker finds the faults of a channel's settings.
type checker func(channel *config.Channel) error

func checkChannels(document string, channels []config.Channel, check checker) error {
	var problems []error
	for i := range channels {
		channel := &channels[i]
		if channel.Test || channel.Provider == "sandbox" {
			continue
		}
		if err := check(channel); err != nil {
			problems = append(problems, fmt.Errorf("%s: channels.%s.settings: %w", document, channel.Name, err))
		}
	}
	return errors.Join(problems...)
}

// checkRead finds all faults, those of the files too that settings name.
func checkRead(readFile func(file string) ([]byte, error)) checker {
	return func(channel *config.Channel) error { return Faults(channel, readFile) }
}

// checkUnread finds the faults that do not depend on what is in files.
func checkUnread(channel *config.Channel) error {
	if !Webbed(channel.Provider) {
		return Faults(channel, local(standIn(channel.Settings)))
	}
	return withoutFiles(channel.Settings, Faults(channel, local(standInWeb(channel.Settings))))
}

// local is read, which reads no file, for names that can lie in a secrets folder.
func local(read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if err := config.LocalSecret(file); err != nil {
			return nil, err
		}
		return read(file)
	}
}

// Faults are those that a channel's adapter finds in its settings and in the files that they name. No connection is
// made.
func Faults(channel *config.Channel, readFile func(file string) ([]byte, error)) error {
	if channel.Provider == "smpp" {
		_, err := smpp.ParseSettings(channel.Settings, readFile)
		return err
	}
	open := opener(channel.Provider)
	if open == nil {
		return fmt.Errorf("provider %q is not known", channel.Provider)
	}
	// An address stands in for the one that the process will give, so that what is needed to read callbacks
	// is checked too.
	opened, err := open(channel.Settings, web.Environment{ReadFile: readFile, Callback: "https://callbacks.invalid/" + channel.Name})
	if err != nil {
		return err
	}
	return opened.Close(context.Background()) // nothing is under way
}

// withoutFiles leaves out the faults of files that a channel's settings name: what stands in for them
// cannot be a key, a token and a certificate at once.
func withoutFiles(settings map[string]any, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		key, _, _ := strings.Cut(err.Error(), ": ")
		if errors.Is(err, config.ErrOutsideSecrets) {
			return err
		}
		if named := settings[key] != nil; named && (strings.HasSuffix(key, "_file") || strings.HasSuffix(key, "_files")) {
			return nil
		}
		return err
	}
	var left []error
	for _, fault := range joined.Unwrap() {
		left = append(left, withoutFiles(settings, fault))
	}
	return errors.Join(left...)
}

// standIn reads no file: it gives a password in place of the password's and a certificate with
// its key in place of all others.
func standIn(settings map[string]any) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if file == settings["password_file"] {
			return []byte("-"), nil
		}
		return certificate()
	}
}

// standInWeb is standIn for the settings of an HTTP API: certificates for what TLS needs, and a secret on one line in
// place of all others.
func standInWeb(settings map[string]any) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		for _, key := range []string{"tls_ca_file", "tls_cert_file", "tls_key_file"} {
			if file == settings[key] {
				return certificate()
			}
		}
		return []byte("a-secret-that-stands-in"), nil
	}
}

// certificate is in PEM form, with its key, and good for nothing but to be read.
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
