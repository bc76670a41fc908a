package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/config"
)

// TestAccessByThePrintedTokenIsForEmbeddedServersOnLoopback: elsewhere the API and the console are
// off unless access is configured, and no token is printed or written.
func TestAccessByThePrintedTokenIsForEmbeddedServersOnLoopback(t *testing.T) {
	t.Parallel()
	issuer := config.Settings{
		OIDCIssuer: "https://issuer.example", OIDCAudience: "dispatcher", OIDCRolesClaim: "roles",
	}
	for name, c := range map[string]struct {
		settings config.Settings
		listen   string
		own      bool
		enabled  bool
		token    bool
	}{
		"IPv4 loopback":               {listen: "127.0.0.1:8080", own: true, enabled: true, token: true},
		"another IPv4 loopback":       {listen: "127.0.0.2:0", own: true, enabled: true, token: true},
		"IPv6 loopback":               {listen: "[::1]:8080", own: true, enabled: true, token: true},
		"localhost":                   {listen: "localhost:8080", own: true, enabled: true, token: true},
		"all addresses":               {listen: ":8080", own: true},
		"all IPv4 addresses":          {listen: "0.0.0.0:8080", own: true},
		"all IPv6 addresses":          {listen: "[::]:8080", own: true},
		"a private address":           {listen: "10.1.2.3:8080", own: true},
		"a name like localhost":       {listen: "localhost.example:8080", own: true},
		"no port":                     {listen: "127.0.0.1", own: true},
		"nothing":                     {own: true},
		"servers of others":           {listen: "127.0.0.1:8080"},
		"servers of others, anywhere": {listen: ":8080"},
		"a configured issuer":         {settings: issuer, listen: "127.0.0.1:8080", own: true, enabled: true},
		"a configured issuer, anywhere": {
			settings: issuer, listen: ":8080", own: true, enabled: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var printed bytes.Buffer
			s := c.settings
			s.Listen, s.DataDir = c.listen, t.TempDir()
			gate, token, err := (&cli{out: &printed}).gate(&s, c.own)
			if err != nil {
				t.Fatal(err)
			}
			if gate.Enabled() != c.enabled || (token != "") != c.token {
				t.Errorf("enabled %t, token %q; want enabled %t, a token %t", gate.Enabled(), token,
					c.enabled, c.token)
			}
			kept, err := os.ReadFile(filepath.Join(s.DataDir, config.EmbeddedToken))
			if !c.token {
				if !os.IsNotExist(err) || printed.Len() > 0 {
					t.Errorf("it wrote %q and printed %q", kept, &printed)
				}
				return
			}
			if strings.TrimSpace(string(kept)) != token || !strings.Contains(printed.String(), token) {
				t.Errorf("it wrote %q and printed %q, want %s in both", kept, &printed, token)
			}
		})
	}
}
