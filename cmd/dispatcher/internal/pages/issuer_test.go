package pages

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/config/tier"
)

// provider is an OpenID Connect provider where anna is signed in. Its token endpoint checks what
// RFC 6749 and RFC 7636 require: the client and its secret, the callback, the verifier, and that a
// code is used once.
type provider struct {
	t      *testing.T
	url    string
	key    *rsa.PrivateKey
	secret string // of the client console; empty for a public client

	mu     sync.Mutex
	codes  map[string]url.Values // parameters of the requests to /auth, by code
	id     map[string]any        // claims over those of a good ID token
	access map[string]any        // claims over those of a good access token; nil for an opaque one
	signer *rsa.PrivateKey       // of ID tokens
	fail   int                   // status of the token endpoint
}

// providerKey is the key of all providers: it takes 200 ms to make one.
var providerKey = sync.OnceValues(func() (*rsa.PrivateKey, error) {
	return rsa.GenerateKey(rand.Reader, 2048)
})

func startProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, secret: "s3cret", codes: map[string]url.Values{}, access: map[string]any{}}
	var err error
	if p.key, err = providerKey(); err != nil {
		t.Fatal(err)
	}
	p.signer = p.key
	rest := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{
		PublicKey: p.key.Public(), KeyID: "first", Algorithm: "RS256",
	}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth", p.auth)
	mux.HandleFunc("POST /token", p.token)
	mux.Handle("/", rest)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	rest.SetIssuer(server.URL)
	p.url = server.URL
	return p
}

func (p *provider) auth(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := r.URL.Query()
	back, err := url.Parse(asked.Get("redirect_uri"))
	if asked.Get("client_id") != "console" || asked.Get("response_type") != "code" || err != nil ||
		back.Path != "/login/callback" || asked.Get("code_challenge_method") != "S256" ||
		!strings.Contains(asked.Get("scope"), "openid") || asked.Get("nonce") == "" {
		http.Error(w, "this is not a request of the console: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = asked
	back.RawQuery = url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	refuse := func(code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"` + code + `"}`))
	}
	client, secret, basic := r.BasicAuth()
	if !basic {
		client = r.PostFormValue("client_id")
	}
	asked := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case p.fail != 0:
		http.Error(w, "down", p.fail)
	case client != "console" || secret != p.secret:
		refuse("invalid_client")
	case asked == nil, asked.Get("redirect_uri") != r.PostFormValue("redirect_uri"),
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]),
		r.PostFormValue("grant_type") != "authorization_code":
		refuse("invalid_grant")
	default:
		p.give(w, asked)
	}
}

// give answers with the tokens.
func (p *provider) give(w http.ResponseWriter, asked url.Values) {
	accessToken := "opaque"
	if p.access != nil {
		accessToken = p.sign(p.key, map[string]any{
			"aud": "sms", "roles": []string{"operator"}, "sub": "anna",
		}, p.access)
	}
	sum := sha256.Sum256([]byte(accessToken))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token_type": "Bearer", "expires_in": 3600, "access_token": accessToken,
		"id_token": p.sign(p.signer, map[string]any{
			"aud": "console", "nonce": asked.Get("nonce"), "sub": "anna", "roles": "viewer",
			"at_hash": base64.RawURLEncoding.EncodeToString(sum[:16]),
		}, p.id),
	})
}

func (p *provider) sign(key *rsa.PrivateKey, claims, over map[string]any) string {
	all := map[string]any{"iss": p.url, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.Copy(all, over)
	text, err := json.Marshal(all)
	if err != nil {
		p.t.Error(err)
	}
	return oidctest.SignIDToken(key, "first", "RS256", string(text))
}

// atIssuer returns a console whose users sign in at a provider.
func atIssuer(t *testing.T, p *provider) *console {
	t.Helper()
	return newConsoleOf(t, p.config(t))
}

func (p *provider) config(t *testing.T) access.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.secret")
	if err := os.WriteFile(file, []byte(p.secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return access.Config{
		OIDCIssuer: p.url, OIDCAudience: "sms", OIDCClientID: "console", OIDCClientSecretFile: file,
		OIDCScopes: []string{"openid", "profile"},
	}
}

// to begins a sign-in, and returns the address that the provider redirects to.
func (p *provider) to(b *client, page string) *url.URL {
	b.t.Helper()
	begun := b.get(issuerPath + "?" + url.Values{"to": {page}}.Encode())
	if begun.StatusCode != http.StatusSeeOther ||
		!strings.HasPrefix(begun.Header.Get("Location"), p.url) {
		b.t.Fatalf("%d %s %s", begun.StatusCode, begun.Header.Get("Location"), begun.body)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet,
		begun.Header.Get("Location"), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	back := b.do(r)
	at, err := url.Parse(back.Header.Get("Location"))
	if back.StatusCode != http.StatusFound || err != nil {
		b.t.Fatalf("the provider: %d %s", back.StatusCode, back.body)
	}
	return at
}

// swap stores the cookie of one sign-in under the name of another.
func (b *client) swap(name, of string) {
	b.t.Helper()
	at, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(at) {
		if prefix, found := strings.CutSuffix(c.Name, of); found {
			b.http.Jar.SetCookies(at, []*http.Cookie{{Name: prefix + name, Value: c.Value, Path: "/"}})
		}
	}
}

// signedIn reports whether the browser has a session.
func (b *client) signedIn() bool { return b.get("/channels").StatusCode == http.StatusOK }

func TestPeopleSignInAtTheIssuerAndComeBackToTheirPage(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	c := atIssuer(t, p)
	b := c.client(t, "")
	if got := b.get("/login?to=/channels/a"); !strings.Contains(got.body,
		`href="/login/issuer?to=%2fchannels%2fa"`) || !strings.Contains(got.body, `name="token"`) {
		t.Errorf("the form to sign in:\n%s", got.body)
	}
	back := p.to(b, "/channels/a")
	got := b.get(back.RequestURI())
	if got.StatusCode != http.StatusOK ||
		!strings.Contains(got.body, `content="0;url=/channels/a"`) {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	page := b.get("/channels/a")
	if page.StatusCode != http.StatusOK || !strings.Contains(page.body, `anna <span class="tag">operator`) {
		t.Errorf("%d: got %s", page.StatusCode, page.body)
	}
	if again := b.get(back.RequestURI()); !strings.Contains(again.body, "has not begun to sign in") {
		t.Errorf("the same answer again: %d %s", again.StatusCode, again.body)
	}
}

// TestATokenWithHundredsOfGroupsSignsIn: its session takes several cookies, which the next session
// and the end of a session delete.
func TestATokenWithHundredsOfGroupsSignsIn(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	c := atIssuer(t, p)
	b := c.client(t, "")
	at, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	groups := func(n int) map[string]any {
		all := make([]string, n)
		for i := range all {
			all[i] = rand.Text() // an id, which does not compress
		}
		return map[string]any{"groups": all}
	}
	signIn := func(n int) int {
		p.access = groups(n)
		b.get(p.to(b, "/").RequestURI())
		return len(b.http.Jar.Cookies(at))
	}
	if n := signIn(200); n != 3 || !b.signedIn() {
		t.Errorf("%d cookies, signed in: %v", n, b.signedIn())
	}
	if n := signIn(1); n != 1 || !b.signedIn() {
		t.Errorf("%d cookies after a shorter token, signed in: %v", n, b.signedIn())
	}
	signIn(200)
	b.post("/logout", nil, nil)
	if n := len(b.http.Jar.Cookies(at)); n != 0 || b.signedIn() {
		t.Errorf("%d cookies after the end of the session, signed in: %v", n, b.signedIn())
	}
	if signIn(1000); b.signedIn() {
		t.Error("a token that does not fit into the cookies signs in")
	}
}

func TestTwoTabsSignInAtOnce(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	b := atIssuer(t, p).client(t, "")
	first, second := p.to(b, "/routes"), p.to(b, "/channels")
	for page, back := range map[string]*url.URL{"/routes": first, "/channels": second} {
		if got := b.get(back.RequestURI()); !strings.Contains(got.body, "0;url="+page+`"`) {
			t.Errorf("%s: got status %d %s", page, got.StatusCode, got.body)
		}
	}
}

func TestASessionWhoseTokenHasEndedLeadsToTheIssuerAgain(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	c := atIssuer(t, p)
	b := c.client(t, "")
	for life := 2 * time.Second; !b.signedIn(); life *= 2 { // a busy machine takes longer to sign in
		p.access = map[string]any{"exp": time.Now().Add(life).Unix()}
		b.get(p.to(b, "/").RequestURI())
	}
	deadline := time.Now().Add(tier.LongestWait)
	for b.signedIn() && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond) // until the token has expired
	}
	got := b.get("/messages?id=known")
	if want := "/login/issuer?to=" + url.QueryEscape("/messages?id=known"); got.StatusCode !=
		http.StatusSeeOther || got.Header.Get("Location") != want {
		t.Errorf("%d: got %s", got.StatusCode, got.Header.Get("Location"))
	}
	// A form was not sent: the page says so, and links to the page of the form.
	form := url.Values{
		"version": {"1"}, "kind": {"all"}, "name": {"x"}, "move": {"pause"}, "reason": {"wrong text"},
	}
	for from, want := range map[string]string{
		b.url + "/channels/a":             `name="to" value="/channels/a"`,
		"https://evil.example/channels/a": `name="to" value="/"`,
	} {
		got := b.post("/pauses", form, map[string]string{"Referer": from})
		if got.StatusCode != http.StatusUnauthorized || !strings.Contains(got.body, want) ||
			!strings.Contains(got.body, "nothing was changed") {
			t.Errorf("from %s: %d %s", from, got.StatusCode, got.body)
		}
	}
	// After signing out no page redirects by itself.
	b.post("/logout", nil, map[string]string{"Sec-Fetch-Site": "same-origin"})
	if got := b.get("/messages"); !strings.HasPrefix(got.Header.Get("Location"), "/login?") {
		t.Errorf("after signing out: %s", got.Header.Get("Location"))
	}
}

func TestOnlyLocalPathsAreGoneOnTo(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	c := atIssuer(t, p)
	for _, page := range []string{
		"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)",
		"/\t/evil.example", "/" + strings.Repeat("x", 2000),
	} {
		b := c.client(t, "")
		if got := b.get(p.to(b, page).RequestURI()); got.StatusCode != http.StatusOK ||
			!strings.Contains(got.body, `content="0;url=/"`) {
			t.Errorf("%.40q: %d %s", page, got.StatusCode, got.body)
		}
	}
}

// TestAnAnswerThatDoesNotBelongToTheSignInIsRefused: only the answer of this issuer to this browser
// begins a session.
func TestAnAnswerThatDoesNotBelongToTheSignInIsRefused(t *testing.T) {
	t.Parallel()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		provider func(p *provider)
		back     func(p *provider, b *client, back *url.URL, query url.Values)
		status   int
		says     string
	}{
		"forged state": {
			back: func(_ *provider, _ *client, _ *url.URL, q url.Values) {
				q.Set("state", rand.Text())
			}, status: http.StatusForbidden, says: "has not begun to sign in",
		},
		"no state": {
			back:   func(_ *provider, _ *client, _ *url.URL, q url.Values) { q.Del("state") },
			status: http.StatusForbidden, says: "has not begun to sign in",
		},
		"answer for another browser": {
			back: func(_ *provider, b *client, _ *url.URL, _ url.Values) {
				b.http.Jar, _ = cookiejar.New(nil)
			}, status: http.StatusForbidden, says: "has not begun to sign in",
		},
		"state of one sign-in in the cookie of another": {
			back: func(p *provider, b *client, back *url.URL, q url.Values) {
				b.swap(q.Get("state"), p.to(b, "/").Query().Get("state"))
			}, status: http.StatusForbidden, says: "the state is another one",
		},
		"code of another sign-in": {
			back: func(p *provider, b *client, _ *url.URL, q url.Values) {
				q.Set("code", p.to(b, "/").Query().Get("code"))
			}, status: http.StatusForbidden, says: "invalid_grant",
		},
		"answer of another issuer": {
			back: func(_ *provider, _ *client, _ *url.URL, q url.Values) {
				q.Set("iss", "https://evil.example")
			}, status: http.StatusForbidden, says: "another issuer",
		},
		"no of the issuer": {
			back: func(_ *provider, _ *client, _ *url.URL, q url.Values) {
				q.Set("error", "access_denied")
			}, status: http.StatusForbidden, says: "access_denied",
		},
		"no in words of somebody else": {
			back: func(_ *provider, _ *client, _ *url.URL, q url.Values) {
				q.Set("error", "Call 0800 123")
			}, status: http.StatusForbidden, says: "without a reason",
		},
		"wrong nonce": {
			provider: func(p *provider) { p.id = map[string]any{"nonce": "of another sign-in"} },
			status:   http.StatusForbidden, says: "for another sign-in",
		},
		"ID token without nonce": {
			provider: func(p *provider) { p.id = map[string]any{"nonce": ""} },
			status:   http.StatusForbidden, says: "for another sign-in",
		},
		"ID token for another client": {
			provider: func(p *provider) { p.id = map[string]any{"aud": "shop"} },
			status:   http.StatusForbidden, says: "no ID token of it for this client",
		},
		"ID token signed by another": {
			provider: func(p *provider) { p.signer = other },
			status:   http.StatusForbidden, says: "no ID token of it for this client",
		},
		"another access token": {
			provider: func(p *provider) { p.id = map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"} },
			status:   http.StatusForbidden, says: "not that of the ID token",
		},
		"access token for another audience": {
			provider: func(p *provider) { p.access = map[string]any{"aud": "shop"} },
			status:   http.StatusForbidden, says: "DISPATCHER_OIDC_AUDIENCE",
		},
		"no role": {
			provider: func(p *provider) { p.access = map[string]any{"roles": "chess"} },
			status:   http.StatusForbidden, says: "have no role here",
		},
		"another secret of the client": {
			provider: func(p *provider) { p.secret = "another" },
			status:   http.StatusForbidden, says: "invalid_client",
		},
		"issuer that is down": {
			provider: func(p *provider) { p.fail = http.StatusBadGateway },
			status:   http.StatusServiceUnavailable, says: "cannot be reached now",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t)
			b := atIssuer(t, p).client(t, "")
			back := p.to(b, "/channels/a")
			query := back.Query()
			if c.provider != nil {
				c.provider(p)
			}
			if c.back != nil {
				c.back(p, b, back, query)
			}
			got := b.get("/login/callback?" + query.Encode())
			if got.StatusCode != c.status || !strings.Contains(got.body, c.says) {
				t.Errorf("%d, not %q:\n%s", got.StatusCode, c.says, got.body)
			}
			if strings.Contains(got.body, "0800") {
				t.Errorf("the page shows text of a forged link:\n%s", got.body)
			}
			if b.signedIn() {
				t.Error("the browser has a session")
			}
		})
	}
}

// TestAnOpaqueAccessTokenLeavesTheIDToken: the ID token is accepted if the audience is the client,
// which has no secret here.
func TestAnOpaqueAccessTokenLeavesTheIDToken(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	p.secret, p.access = "", nil
	cfg := p.config(t)
	cfg.OIDCAudience, cfg.OIDCClientSecretFile = "console", ""
	b := newConsoleOf(t, cfg).client(t, "")
	b.get(p.to(b, "/").RequestURI())
	if got := b.get("/channels"); !strings.Contains(got.body, `anna <span class="tag">viewer`) {
		t.Errorf("%d: got %s, want %q in it", got.StatusCode, got.body, `anna <span class="tag">viewer`)
	}
}

func TestWithoutAClientThereIsNoSignInAtTheIssuer(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	cfg := p.config(t)
	cfg.OIDCClientID, cfg.OIDCClientSecretFile = "", ""
	b := newConsoleOf(t, cfg).client(t, "")
	if got := b.get("/login"); strings.Contains(got.body, issuerPath) {
		t.Errorf("the form links to it:\n%s", got.body)
	}
	for _, path := range []string{issuerPath, callbackPath + "?code=x&state=y"} {
		if got := b.get(path); got.StatusCode != http.StatusNotFound &&
			got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d", path, got.StatusCode)
		}
	}
}
