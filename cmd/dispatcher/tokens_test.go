package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
)

// TestTokensNewShowsATokenOnce: the file has its hash, and the gate accepts the token.
func TestTokensNewShowsATokenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("# without an end of line"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPATCHER_API_TOKENS_FILE=" + path}
	made := decoded[tokenMade](t, dispatcher(t, "", env, "tokens", "new", "--name", "anna",
		"--role", "operator", "--format", "json"))
	shown := dispatcher(t, "", env, "tokens", "new", "--name", "ben", "--role", "finance")
	sender := decoded[tokenMade](t, dispatcher(t, "", env, "tokens", "new", "--name", "shop-1",
		"--role", "sender", "--tenant", "shop", "--lanes", "otp,bulk", "--ids", "s-", "--format",
		"json"))
	listed := decoded[[]tokenShown](t, dispatcher(t, "", env, "tokens", "list", "--format",
		"json"))
	if len(listed) != 3 || listed[2].Tenant != "shop" || listed[2].Lanes != "otp,bulk" ||
		listed[2].IDs != "s-" || listed[0].Name != "anna" || listed[0].Role != "operator" ||
		listed[1].Name != "ben" || shown.code != exitOK {
		t.Errorf("%+v, %+v", listed, shown)
	}
	raw, err := os.ReadFile(path)
	token, _, _ := strings.Cut(shown.out, "\n")
	if err != nil || strings.Contains(string(raw), made.Token) ||
		strings.Contains(string(raw), token) {
		t.Errorf("the file has a token: %v", err)
	}
	gate, err := access.New(access.Config{TokensFile: path})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]access.Principal{
		made.Token: {Name: "anna", Role: access.Operator},
		token:      {Name: "ben", Role: access.Finance},

		sender.Token: {
			Name: "shop-1", Role: access.Sender, Tenant: "shop", Lanes: "otp,bulk", Prefix: "s-",
		},
	} {
		if p, err := gate.Token(t.Context(), token); err != nil || p != want {
			t.Errorf("got %+v, error %v", p, err)
		}
	}
}

func TestTokensNewWithoutAFileShowsTheLine(t *testing.T) {
	t.Parallel()
	got := dispatcher(t, "", nil, "tokens", "new", "--name", "anna", "--role", "viewer")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != exitOK || len(lines) < 3 ||
		!strings.HasPrefix(lines[len(lines)-1], "anna viewer ") {
		t.Errorf("got %+v", got)
	}
	for _, args := range [][]string{
		{"tokens", "new", "--name", "anna"},
		{"tokens", "new", "--role", "viewer"},
		{"tokens", "new", "--name", "a b", "--role", "viewer"},
		{"tokens", "list"},
	} {
		if got := dispatcher(t, "", nil, args...); got.code != exitUsage {
			t.Errorf("%v: got %+v, want exit code %d", args, got, exitUsage)
		}
	}
}
