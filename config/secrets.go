package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// maxSecret bounds a file of secrets, so that a wrong path does not fill the memory.
const maxSecret = 64 << 10

// readSecrets reads what *_FILE settings point at.
func (s *Settings) readSecrets() error { return errors.Join(s.readAuthorities(), s.readPassword()) }

func (s *Settings) readAuthorities() error {
	if s.KafkaCAFile == "" {
		return nil
	}
	text, err := readSecretFile(Prefix+"_KAFKA_CA_FILE", s.KafkaCAFile)
	if err != nil {
		return err
	}
	s.KafkaCA = x509.NewCertPool()
	if !s.KafkaCA.AppendCertsFromPEM([]byte(text)) {
		return fmt.Errorf("%s_KAFKA_CA_FILE: file %s holds no certificate in PEM form; write one into it", Prefix, s.KafkaCAFile)
	}
	return nil
}

func (s *Settings) readPassword() error {
	if s.KafkaSASLPasswordFile == "" {
		return nil
	}
	text, err := readSecretFile(Prefix+"_KAFKA_SASL_PASSWORD_FILE", s.KafkaSASLPasswordFile)
	if err != nil {
		return err
	}
	if s.KafkaSASLPassword = strings.TrimSpace(text); s.KafkaSASLPassword == "" {
		return fmt.Errorf("%s_KAFKA_SASL_PASSWORD_FILE: file %s is empty; write the password into it", Prefix, s.KafkaSASLPasswordFile)
	}
	return nil
}

// readSecretFile reads a small file that a setting names.
func readSecretFile(setting, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: there is no file %s; create it or correct the path", setting, path)
	case err != nil:
		return "", fmt.Errorf("%s: %w; correct the path or its permissions", setting, err)
	case info.IsDir():
		return "", fmt.Errorf("%s: %s is a folder; name the file in it", setting, path)
	case info.Size() > maxSecret:
		return "", fmt.Errorf("%s: file %s is larger than %d bytes; it cannot be the right one", setting, path, maxSecret)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w; correct its permissions", setting, err)
	}
	return string(text), nil
}
