package app

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync"

	"dispatcher/config"
	"dispatcher/provider/smpp"
)

// CheckChannels reports the settings that adapters would refuse, each with its key. Name is that of the
// document, for the error sentences. The files that settings name are not read: they lie
// where dispatchers run, which need not be here.
func CheckChannels(name string, doc *config.Routing) error {
	return checkChannels(name, doc.Channels, standIn)
}

// reader gives what a channel's settings read files with.
type reader func(settings map[string]any) func(file string) ([]byte, error)

func checkChannels(document string, channels []config.Channel, files reader) error {
	var problems []error
	for i := range channels {
		channel := &channels[i]
		if channel.Test || channel.Provider != "smpp" {
			continue
		}
		if _, err := smpp.ParseSettings(channel.Settings, files(channel.Settings)); err != nil {
			problems = append(problems, fmt.Errorf("%s: channels.%s.settings: %w", document, channel.Name, err))
		}
	}
	return errors.Join(problems...)
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
