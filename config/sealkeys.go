package config

import "strings"

// SealKeys reads the lines of the file that DISPATCHER_SEAL_KEY_FILE names: signer and verifier
// keys in the form of golang.org/x/mod/sumdb/note.
func SealKeys(path string) ([]string, error) {
	text, err := readSecretFile(Prefix+"_SEAL_KEY_FILE", path)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
