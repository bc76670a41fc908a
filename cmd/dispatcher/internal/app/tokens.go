package app

import (
	"errors"
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
)

// readTokens fills in the secrets of scoring functions. A function whose token cannot be
// read is asked without one and will say no, so its route scores by the default rule; the
// troubles, by route, say why.
func readTokens(doc *config.Routing, compiled *dispatch.Routing, read func(string) ([]byte, error)) map[string]error {
	troubles := map[string]error{}
	for i := range doc.Routes {
		f := doc.Routes[i].Scoring.Function
		if f == nil || f.TokenFile == "" {
			continue
		}
		token, err := readToken(f.TokenFile, read)
		if err != nil {
			troubles[doc.Routes[i].Name] = fmt.Errorf("scoring.token_file: %w", err)
			continue
		}
		compiled.Routes[i].Scoring.Function.Token = token
	}
	return troubles
}

// ReadTokens does for a command what the running dispatcher does with the secrets of scoring functions.
func ReadTokens(doc *config.Routing, compiled *dispatch.Routing, secrets *config.SecretsFolder) map[string]error {
	return readTokens(doc, compiled, secrets.Read)
}

// maxToken bounds a token, which travels in a header.
const maxToken = 4 << 10

func readToken(path string, read func(string) ([]byte, error)) (string, error) {
	raw, err := read(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case token == "":
		return "", fmt.Errorf("file %s is empty; write the token into it", path)
	case len(token) > maxToken:
		return "", fmt.Errorf("file %s is longer than %d bytes; it cannot be the right one", path, maxToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("file " + path + " holds more than one word of plain ASCII; write the token alone into it")
	}
	return token, nil
}
