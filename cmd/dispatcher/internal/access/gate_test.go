package access_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"dispatcher/cmd/dispatcher/internal/access"
)

func TestRolesAllowWhatTheTableSays(t *testing.T) {
	t.Parallel()
	const v, o, r, a, s = access.View, access.Operate, access.Report, access.Audit, access.Send
	for role, allowed := range map[access.Role][]access.Action{
		access.None:                      {},
		access.Viewer:                    {v},
		access.Operator:                  {v, o},
		access.Finance:                   {r, a},
		access.Sender:                    {s},
		access.Admin:                     {v, o, r, a, s},
		access.Operator | access.Finance: {v, o, r, a},
	} {
		want := map[access.Action]bool{}
		for _, action := range allowed {
			want[action] = true
		}
		for _, action := range access.Actions() {
			if role.May(action) != want[action] {
				t.Errorf("%s may %s: got %t", role, action, role.May(action))
			}
		}
		if role.May(0) {
			t.Errorf("%s may do the zero action, want no", role)
		}
	}
	for _, name := range []string{"viewer", "operator", "finance", "sender", "admin"} {
		if role, err := access.ParseRole(name); err != nil || role.String() != name {
			t.Errorf("%s: got role %s, %v", name, role, err)
		}
	}
	if _, err := access.ParseRole("none"); err == nil {
		t.Error("the role none was accepted")
	}
}

// newToken creates a token and its line in the file.
func newToken(t *testing.T, name string, role access.Role) (token, line string) {
	t.Helper()
	token, entry, err := access.NewToken(name, role)
	if err != nil {
		t.Fatal(err)
	}
	return token, entry.String() + "\n"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newGate(t *testing.T, cfg access.Config) *access.Gate {
	t.Helper()
	g, err := access.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheGateIsOffUnlessSomethingIsConfigured(t *testing.T) {
	t.Parallel()
	var none *access.Gate
	if g := newGate(t, access.Config{}); g.Enabled() || none.Enabled() {
		t.Error("it is on")
	}
	if _, err := newGate(t, access.Config{}).Token(t.Context(), "anything"); !errors.Is(err,
		access.ErrUnauthenticated) {
		t.Errorf("a valid token: got %v", err)
	}
	if _, err := access.New(access.Config{TokensFile: "/nowhere"}); err == nil {
		t.Error("a missing file was accepted")
	}
}

func TestTheEmbeddedTokenMayDoAll(t *testing.T) {
	t.Parallel()
	g := newGate(t, access.Config{Embedded: "printed"})
	p, err := g.Token(t.Context(), "printed")
	if err != nil || p.Role != access.Admin || p.Name != access.EmbeddedName {
		t.Errorf("got %+v, error %v", p, err)
	}
	if _, err := g.Token(t.Context(), "printe"); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("an unknown token: got %v", err)
	}
}

func TestATokenTakenOutOfTheFileIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	anna, annas := newToken(t, "anna", access.Operator)
	bob, bobs := newToken(t, "bob", access.Finance)
	write(t, path, "# who may come in\n\n"+annas+bobs)
	g := newGate(t, access.Config{TokensFile: path})
	if p, err := g.Token(t.Context(), anna); err != nil || p != (access.Principal{
		Name: "anna", Role: access.Operator,
	}) {
		t.Errorf("got %+v, error %v", p, err)
	}
	write(t, path, bobs)
	if _, err := g.Token(t.Context(), anna); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("the removed token: got %v", err)
	}
	if p, err := g.Token(t.Context(), bob); err != nil || p.Name != "bob" {
		t.Errorf("got %+v, error %v", p, err)
	}
	write(t, path, bobs+"half a line\n")
	if _, err := g.Token(t.Context(), bob); !errors.Is(err, access.ErrUnavailable) ||
		strings.Contains(err.Error(), "half") {
		t.Errorf("after an invalid file: got %v", err)
	}
	write(t, path, bobs)
	if _, err := g.Token(t.Context(), bob); err != nil {
		t.Errorf("after the corrected file: got %v", err)
	}
}

func TestABrokenFileOfTokensNamesItsLine(t *testing.T) {
	t.Parallel()
	_, good := newToken(t, "anna", access.Viewer)
	hash := strings.Fields(good)[2]
	for text, want := range map[string]string{
		good + "bob viewer":                     "line 2: write name, role and the SHA-256",
		"bob none " + hash:                      "line 1: the role is not",
		"bob viewer " + hash[:62]:               "line 1: the hash is not",
		"bob viewer " + hash + " shop":          "line 1: only a sender is bound",
		"bob sender " + hash + " a b":           "line 1: write name",
		"bob sender " + hash + " a lanes=":      "line 1: write name",
		"bob sender " + hash + " a ids=b ids=c": "line 1: write name",
		"bob sender " + hash + " a ids=\u200b":  "line 1: lanes and ids",
		"b\u200bob viewer " + hash:              "line 1: a name has",
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		write(t, path, text)
		if _, err := access.New(access.Config{TokensFile: path}); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), hash) {
			t.Errorf("%q: got error %v", text, err)
		}
	}
	if _, _, err := access.NewToken("two words", access.Viewer); err == nil {
		t.Error("a name with a space was accepted")
	}
}

func TestASenderMayBeBoundToATenant(t *testing.T) {
	t.Parallel()
	token, entry, err := access.NewToken("shop-1", access.Sender)
	if err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{"", "two words", "#shop"} {
		if err := entry.Bind(odd); err == nil {
			t.Errorf("tenant %q was accepted", odd)
		}
	}
	if err := entry.BoundTo("otp", ""); err == nil {
		t.Error("lanes without a tenant were accepted")
	}
	if err := errors.Join(entry.Bind("shop"), entry.BoundTo("otp,bulk", "shop-")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, entry.String())
	issuer := startIssuer(t)
	g := newGate(t, access.Config{
		TokensFile: path, OIDCIssuer: issuer.url, OIDCAudience: "sms", OIDCTenantClaim: "org",
	})
	want := access.Principal{
		Name: "shop-1", Role: access.Sender, Tenant: "shop", Lanes: "otp,bulk", Prefix: "shop-",
	}
	if p, err := g.Token(t.Context(), token); err != nil || p != want {
		t.Errorf("got %+v, error %v", p, err)
	}
	of := func(claims map[string]any) string { return issuer.token(t, issuer.key, claims) }
	want = access.Principal{Name: "4711", Role: access.Sender, Tenant: "shop"}
	if p, err := g.Token(t.Context(), of(map[string]any{
		"roles": "sender", "org": "shop",
	})); err != nil || p != want {
		t.Errorf("of the issuer: %+v, %v", p, err)
	}
	for _, roles := range []any{"sender", []string{"viewer", "sender"}} {
		if p, err := g.Token(t.Context(), of(map[string]any{"roles": roles})); !errors.Is(err,
			access.ErrNoRole) {
			t.Errorf("%v of the issuer without the claim: %+v, %v", roles, p, err)
		}
	}
	if _, err := g.Token(t.Context(), of(nil)); err != nil {
		t.Errorf("a viewer of the issuer without the claim: %v", err)
	}
}

func TestOnlyOneBearerHeaderIsRead(t *testing.T) {
	t.Parallel()
	g := newGate(t, access.Config{Embedded: "printed"})
	for name, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"none":       {nil, false},
		"bearer":     {[]string{"Bearer printed"}, true},
		"lower case": {[]string{"bearer printed"}, true},
		"basic":      {[]string{"Basic printed"}, false},
		"bare":       {[]string{"printed"}, false},
		"empty":      {[]string{"Bearer "}, false},
		"two":        {[]string{"Bearer printed", "Bearer printed"}, false},
		"too long":   {[]string{"Bearer " + strings.Repeat("x", 1<<15)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header["Authorization"] = c.headers
			if _, err := g.Authenticate(r); (err == nil) != c.ok {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// testIssuer is an OpenID Connect issuer on loopback with an RSA key of its own.
type testIssuer struct {
	url string
	key *rsa.PrivateKey
}

func startIssuer(t *testing.T) *testIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	handler := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{
		PublicKey: key.Public(), KeyID: "first", Algorithm: "RS256",
	}}}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	handler.SetIssuer(server.URL)
	return &testIssuer{server.URL, key}
}

// token signs the claims of a valid token with changes; a nil value removes a claim.
func (i *testIssuer) token(t *testing.T, key crypto.PrivateKey, claims map[string]any) string {
	t.Helper()
	all := map[string]any{
		"iss": i.url, "aud": "sms", "sub": "4711", "exp": time.Now().Add(time.Hour).Unix(),
		"roles": []string{"viewer"},
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(key, "first", "RS256", string(text))
}

func TestTokensOfTheIssuerAreVerified(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	g := newGate(t, access.Config{OIDCIssuer: issuer.url, OIDCAudience: "sms"})
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key    *rsa.PrivateKey
		claims map[string]any
		want   error
		role   access.Role
	}{
		"valid": {issuer.key, nil, nil, access.Viewer},
		"two roles": {
			issuer.key,
			map[string]any{"roles": []string{"finance", "operator", "chess"}},
			nil,
			access.Finance | access.Operator,
		},
		"one role as text":  {issuer.key, map[string]any{"roles": "admin"}, nil, access.Admin},
		"no role":           {issuer.key, map[string]any{"roles": nil}, access.ErrNoRole, 0},
		"role of others":    {issuer.key, map[string]any{"roles": "chess"}, access.ErrNoRole, 0},
		"signed by another": {other, nil, access.ErrUnauthenticated, 0},
		"expired":           {issuer.key, map[string]any{"exp": 1}, access.ErrUnauthenticated, 0},
		"for another":       {issuer.key, map[string]any{"aud": "x"}, access.ErrUnauthenticated, 0},
		"without audience":  {issuer.key, map[string]any{"aud": nil}, access.ErrUnauthenticated, 0},
		"of another issuer": {issuer.key, map[string]any{"iss": "x"}, access.ErrUnauthenticated, 0},
		"without a subject": {issuer.key, map[string]any{"sub": nil}, access.ErrUnauthenticated, 0},
		"with an odd subject": {
			issuer.key, map[string]any{"sub": "a\nb"}, access.ErrUnauthenticated, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := g.Token(t.Context(), issuer.token(t, c.key, c.claims))
			if !errors.Is(err, c.want) || p.Role != c.role || err == nil && p.Name != "4711" {
				t.Errorf("got %+v, error %v", p, err)
			}
		})
	}
	if _, err := g.Token(t.Context(), "a.b.c"); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("an invalid token: got %v", err)
	}
}

func TestClaimsOfAnIssuerAreMapped(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	g := newGate(t, access.Config{
		OIDCIssuer: issuer.url, OIDCAudience: "sms", OIDCRolesClaim: "realm_access.roles",
		OIDCRoleMap: map[string]string{"sms-team": "operator"}, OIDCNameClaim: "email",
	})
	groups := func(verified bool, names ...string) map[string]any {
		return map[string]any{
			"email": "anna@example.com", "email_verified": verified,
			"realm_access": map[string]any{"roles": names},
		}
	}
	p, err := g.Token(t.Context(), issuer.token(t, issuer.key, groups(true, "sms-team")))
	if err != nil || p != (access.Principal{Name: "anna@example.com", Role: access.Operator}) {
		t.Errorf("got %+v, error %v", p, err)
	}
	if _, err := g.Token(t.Context(), issuer.token(t, issuer.key, groups(true,
		"operator"))); !errors.Is(err, access.ErrNoRole) {
		t.Errorf("a value that the map does not have: %v", err)
	}
	if _, err := g.Token(t.Context(), issuer.token(t, issuer.key, groups(false,
		"sms-team"))); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("an unverified address: got %v", err)
	}
}

func TestAnIssuerThatIsAwayIsNoRefusal(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	token := issuer.token(t, issuer.key, nil)
	away := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(away.Close)
	g := newGate(t, access.Config{OIDCIssuer: away.URL, OIDCAudience: "sms"})
	if _, err := g.Token(context.Background(), token); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("got error %v", err)
	}
	for url, audience := range map[string]string{
		"http://login.example.com": "sms", "https://login.example.com": "", "login": "sms",
	} {
		if _, err := access.New(access.Config{
			OIDCIssuer: url, OIDCAudience: audience,
		}); err == nil {
			t.Errorf("issuer %s with audience %q is accepted", url, audience)
		}
	}
}
