package config

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dispatcher/selector"
)

// DrawKeys reads the file that DISPATCHER_DRAW_KEY_FILE names. The first key makes new draws; the
// others are older and kept to verify their draws.
func DrawKeys(path string) ([]selector.Key, error) {
	text, err := readSecretFile(Prefix+"_DRAW_KEY_FILE", path)
	if err != nil {
		return nil, err
	}
	return ParseDrawKeys(path, text)
}

// CreateDrawKey creates a file with a new key that only its owner can read, and returns once it is
// synced to disk. If the file exists, the error wraps fs.ErrExist, and the file is left unchanged,
// because draws may depend on it.
func CreateDrawKey(path string) error { return CreateSecret(path, NewDrawKey()) }

// CreateSecret creates a file with text that only its owner can read, as CreateDrawKey does.
func CreateSecret(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// ParseDrawKeys reads one key a line, 64 hexadecimal digits each. Blank lines and lines that begin
// with # are ignored. name is the file's, for error messages, which never show a key.
func ParseDrawKeys(name, text string) ([]selector.Key, error) {
	var keys []selector.Key
	lines := bufio.NewScanner(strings.NewReader(text))
	seen := map[selector.Key]int{}
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := selector.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf(`%s:%d: %w; "dispatcher keys new" makes one in a new file`, name,
				n, err)
		}
		if first, twice := seen[key]; twice {
			return nil, fmt.Errorf("%s:%d: the key of line %d is listed again; remove one of "+
				"the two", name, n, first)
		}
		seen[key] = n
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: a line is too long to be a key; write one key of 64 "+
			"hexadecimal digits a line", name)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf(`%s: there is no key in it; remove the file and make one with `+
			`"dispatcher keys new %s"`, name, name)
	}
	return keys, nil
}

// NewDrawKey makes the text of a file with one new key from the system's random source.
func NewDrawKey() string {
	return "# The first key draws, later ones verify older draws. Keep this file secret and " +
		"keep old keys.\n" + newKeyLine()
}

// AddDrawKey inserts a new key from the system's random source at the top of the text of a key
// file. The new key makes draws from then on. The rest of the text stays unchanged, because the
// older keys verify their draws.
func AddDrawKey(text string) string {
	if text == "" {
		return NewDrawKey()
	}
	return newKeyLine() + text
}

// AppendDrawKey inserts a new key from the system's random source below the first key of the text
// of a key file, and returns it. The new key makes no draws until PromoteDrawKey moves it to the
// top, so that every process can read it before. The rest of the text stays unchanged.
func AppendDrawKey(text string) (changed string, added selector.Key, err error) {
	lines, first := keyLines(text)
	if len(first) == 0 {
		return "", added, errors.New("there is no key in it yet")
	}
	line := newKeyLine()
	if added, err = selector.ParseKey(strings.TrimSpace(line)); err != nil {
		return "", added, err
	}
	at := first[0]
	if !strings.HasSuffix(lines[at], "\n") {
		lines[at] += "\n"
	}
	return strings.Join(slices.Insert(lines, at+1, line), ""), added, nil
}

// PromoteDrawKey moves the key with that id above the first key of the text of a key file, so that
// it makes draws from then on. The other keys keep their order, and every comment its place.
func PromoteDrawKey(text, id string) (string, error) {
	lines, keys := keyLines(text)
	for _, from := range keys {
		key, err := selector.ParseKey(strings.TrimSpace(lines[from]))
		if err != nil || key.ID() != id {
			continue
		}
		line := strings.TrimRight(lines[from], "\r\n") + "\n"
		lines = slices.Delete(lines, from, from+1)
		return strings.Join(slices.Insert(lines, keys[0], line), ""), nil
	}
	return "", fmt.Errorf("there is no key with the id %q in it", id)
}

// keyLines splits a text into lines, with their ends, and returns the indices of those that hold a
// key.
func keyLines(text string) (lines []string, keys []int) {
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			keys = append(keys, len(lines))
		}
		lines = append(lines, line)
	}
	return lines, keys
}

func newKeyLine() string {
	var key [selector.KeySize]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the process when the system has no randomness
	return hex.EncodeToString(key[:]) + "\n"
}
