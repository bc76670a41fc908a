package browser

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// startIssuer starts an OpenID Connect provider with a form to sign in. It is at localhost, which
// is another site than the console at 127.0.0.1: the browser sends no strict cookies with requests
// that come from there.
func startIssuer(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	server := httptest.NewUnstartedServer(nil)
	at := strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "http://localhost", 1)
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	sign := func(claims map[string]any) string {
		claims["iss"], claims["exp"] = at, time.Now().Add(time.Hour).Unix()
		body, err := json.Marshal(claims)
		if err != nil {
			t.Error(err)
		}
		signed := text([]byte(`{"alg":"RS256","kid":"first"}`)) + "." + text(body)
		sum := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Error(err)
		}
		return signed + "." + text(signature)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": at, "authorization_endpoint": at + "/auth", "token_endpoint": at + "/token",
			"jwks_uri": at + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "first", "n": text(key.N.Bytes()),
			"e": text(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /auth", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>issuer</title><h1>issuer</h1>
			<form method="post"><button id="yes">I am anna</button></form>`)
	})
	mux.HandleFunc("POST /auth", func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query()
		http.Redirect(w, r, asked.Get("redirect_uri")+"?"+url.Values{
			"state": {asked.Get("state")}, "code": {asked.Get("nonce")},
		}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]any{
			"token_type":   "Bearer",
			"access_token": sign(map[string]any{"sub": "anna", "aud": "sms", "roles": "operator"}),
			"id_token": sign(map[string]any{
				"sub": "anna", "aud": "console", "nonce": r.PostFormValue("code"),
			}),
		})
	})
	server.Config.Handler = mux
	server.Start()
	t.Cleanup(server.Close)
	return at
}

// TestSomebodySignsInAtTheIssuer and is led to the page that was opened first, although the
// session's cookie is strict and the issuer is another site.
func TestSomebodySignsInAtTheIssuer(t *testing.T) {
	s := start(t, "DISPATCHER_OIDC_ISSUER="+startIssuer(t), "DISPATCHER_OIDC_AUDIENCE=sms",
		"DISPATCHER_OIDC_CLIENT_ID=console")
	ctx := browser(t)
	open(t, ctx, s.url+"/channels/b")
	check(t, ctx, axe(t), "login")
	do(t, ctx, chromedp.Click(chromedp.CSS("a.main")), chromedp.Click(chromedp.CSS("#yes")))
	wait(t, "the page that was opened first", func() bool {
		return strings.Contains(text(t, ctx, "h1"), "Channel b") &&
			strings.Contains(text(t, ctx, ".who"), "anna")
	})
}
