package web

import (
	"fmt"
	"strings"

	"dispatcher/provider/settings"
)

// maxSecrets is how many secrets may be valid at once: the current one, and another while they are exchanged.
const maxSecrets = 2

// Secret reads the file that a setting names, without its last line break.
func Secret(r *settings.Reader, key string) string {
	return strings.TrimRight(string(r.File(key)), "\r\n")
}

// Secrets reads the file, or the list of at most two files, that a setting names: while a secret is
// exchanged both the old and the new one are valid.
func Secrets(r *settings.Reader, key string, readFile func(name string) ([]byte, error)) []string {
	return SecretsBy(r, key, readFile, func(path string, content []byte) (string, error) {
		secret := strings.TrimRight(string(content), "\r\n")
		if secret == "" {
			return "", fmt.Errorf("%s is empty", path)
		}
		return secret, nil
	})
}

// SecretsBy reads what Secrets reads, for a vendor whose secrets have a form: clean takes one out of its file, or says
// what is wrong with it, without showing any of it.
func SecretsBy[S any](r *settings.Reader, key string, readFile func(name string) ([]byte, error), clean func(path string, content []byte) (S, error)) []S {
	paths := r.Texts(key)
	if len(paths) > maxSecrets {
		r.Failf(key, "names %d files; at most %d secrets can be valid at once", len(paths), maxSecrets)
		return nil
	}
	var secrets []S
	for _, path := range paths {
		content, err := readFile(path)
		if err != nil {
			r.Fail(key, err)
			continue
		}
		secret, err := clean(path, content)
		if err != nil {
			r.Fail(key, err)
			continue
		}
		secrets = append(secrets, secret)
	}
	return secrets
}
