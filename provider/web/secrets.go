package web

import (
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
	paths := r.Texts(key)
	if len(paths) > maxSecrets {
		r.Failf(key, "names %d files; at most %d secrets can be valid at once", len(paths), maxSecrets)
		return nil
	}
	var secrets []string
	for _, path := range paths {
		content, err := readFile(path)
		secret := strings.TrimRight(string(content), "\r\n")
		switch {
		case err != nil:
			r.Fail(key, err)
		case secret == "":
			r.Failf(key, "%s is empty", path)
		default:
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
