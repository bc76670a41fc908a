package web

import (
	"errors"
	"fmt"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/settings"
)

// Environment is what the process gives a channel besides its settings.
type Environment struct {
	// ReadFile reads the files that settings name.
	ReadFile func(name string) ([]byte, error)
	// Callback is the public URL to which the provider posts receipts and inbound messages of this
	// channel. If empty, this deployment receives none, and none are requested.
	Callback string
}

// OpenFunc opens a channel from its settings; each adapter's Open is one. Its error joins all
// faults of the settings, each under its key. It reads files and makes no connection.
type OpenFunc func(values map[string]any, o Environment) (provider.Channel, error)

// Adapter is the channel of an adapter.
type Adapter interface {
	provider.Channel
	provider.Capable
	provider.CallbackReader
}

// Open implements an adapter's Open: parse checks the settings and reads their files, and make
// returns the channel.
func Open[C any, A Adapter](
	values map[string]any, o Environment, parse func(map[string]any, Environment) (C, error),
	make func(C) A,
) (provider.Channel, error) {
	cfg, err := parse(values, o)
	if err != nil {
		return nil, err
	}
	return make(cfg), nil
}

// Concurrency is how many calls a channel with these settings can have in flight.
func Concurrency(values map[string]any) int {
	r := settings.New(map[string]any{"connections": values["connections"]}, nil)
	if n := r.Integer("connections", 1, maxConnections); n > 0 && r.Err() == nil {
		return n
	}
	return DefaultConnections
}

// JoinFaults joins the faults of reading settings and those that Validate found. Each reads "key:
// ...". If a key could not be read, Validate's fault of it is left out: it would only say that the
// value is missing.
func JoinFaults(read, invalid error) error {
	list := flatten(read)
	known := map[string]bool{}
	for _, err := range list {
		known[keyOf(err)] = true
	}
	for _, err := range flatten(invalid) {
		if !known[keyOf(err)] {
			list = append(list, err)
		}
	}
	return errors.Join(list...)
}

// flatten splits joined errors.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, one := range joined.Unwrap() {
		list = append(list, flatten(one)...)
	}
	return list
}

func keyOf(err error) string {
	key, _, _ := strings.Cut(err.Error(), ":")
	return key
}

// maxSecrets is how many secrets may be valid at once: the current one, and another during a
// rotation.
const maxSecrets = 2

// OneLine is the content of a secret's file without the line break at its end. It refuses what a
// header could not carry, and blanks at the ends. The error shows nothing of it.
func OneLine(content []byte) (string, error) {
	text := strings.TrimRight(string(content), "\r\n")
	if text == "" {
		return "", errors.New("is empty")
	}
	if text != strings.TrimSpace(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("holds something else than one line of printable characters")
	}
	return text, nil
}

// Secret reads the file that a setting names, a single line.
func Secret(r *settings.Reader, key string) string {
	content := r.File(key)
	if len(content) == 0 {
		return "" // File has reported it
	}
	text, err := OneLine(content)
	if err != nil {
		r.Fail(key, err)
	}
	return text
}

// Secrets reads the file, or the list of at most two files, that a setting names. While a secret is
// rotated, both the old and the new one are valid.
func Secrets(r *settings.Reader, key string, readFile func(name string) ([]byte, error)) []string {
	return SecretsBy(r, key, readFile, func(path string, content []byte) (string, error) {
		secret, err := OneLine(content)
		if err != nil {
			return "", fmt.Errorf("%s %w", path, err)
		}
		return secret, nil
	})
}

// SecretsBy reads the same files as Secrets, for secrets with a format: clean parses the content of
// a file, or returns an error that shows nothing of it.
func SecretsBy[S any](
	r *settings.Reader, key string, readFile func(name string) ([]byte, error),
	clean func(path string, content []byte) (S, error),
) []S {
	paths := r.Texts(key)
	if len(paths) > maxSecrets {
		r.Failf(key, "names %d files; at most %d secrets can be valid at once", len(paths),
			maxSecrets)
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
