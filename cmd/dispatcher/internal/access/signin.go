package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// SignIn is one sign-in of a browser at the issuer, by the authorization code flow of OpenID
// Connect Core 1.0, section 3.1, with PKCE (RFC 7636). The caller must keep it where only this
// browser can send it back, such as in a sealed cookie.
type SignIn struct {
	// Callback is the redirect URL, which must be registered at the issuer.
	Callback string `json:"u"`
	// State is in the issuer's answer, Nonce in the ID token. The issuer gets a hash of Verifier
	// with the sign-in URL, and Verifier itself with the code.
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// NewSignIn begins a sign-in that redirects back to callback.
func NewSignIn(callback string) SignIn {
	return SignIn{
		Callback: callback, State: rand.Text(), Nonce: rand.Text(),
		Verifier: oauth2.GenerateVerifier(),
	}
}

// ErrRefused means that the issuer did not let the browser in, or that its answer does not belong
// to the sign-in.
var ErrRefused = errors.New("the issuer let nobody in")

// SignsInAt is the host of the issuer at which people sign in; empty when there is none.
func (g *Gate) SignsInAt() string {
	if g.issuer == nil || g.issuer.clientID == "" {
		return ""
	}
	u, err := url.Parse(g.issuer.url)
	if err != nil {
		return ""
	}
	return u.Host
}

// SignInURL is the authorization URL at the issuer, which the browser opens.
func (g *Gate) SignInURL(in *SignIn) (string, error) {
	oauth, _, err := g.issuer.oauth(in)
	if err != nil {
		return "", err
	}
	return oauth.AuthCodeURL(in.State, oidc.Nonce(in.Nonce),
		oauth2.S256ChallengeOption(in.Verifier)), nil
}

// Exchange checks the answer of the issuer, which is the query of the request to Callback. It
// returns a token that Token accepts: the access token if that is valid here, else the ID token.
// The error holds no part of a token.
func (g *Gate) Exchange(ctx context.Context, answer url.Values, in *SignIn) (string, error) {
	switch {
	case subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(in.State)) != 1:
		return "", fmt.Errorf("%w: the state is another one", ErrRefused)
	case answer.Has("iss") && answer.Get("iss") != g.issuer.url: // RFC 9207
		return "", fmt.Errorf("%w: the answer is from another issuer", ErrRefused)
	case answer.Has("error"):
		return "", fmt.Errorf("%w: %s", ErrRefused, word(answer.Get("error")))
	}
	tokens, err := g.issuer.exchange(ctx, answer.Get("code"), in)
	if err != nil {
		return "", err
	}
	for _, token := range tokens {
		_, problem := g.Token(ctx, token)
		if problem == nil {
			return token, nil
		}
		if err == nil || !errors.Is(problem, ErrUnauthenticated) {
			err = problem
		}
	}
	return "", err
}

// oauth is the OAuth client of the console. It reads the secret from its file each time, so that a
// new secret needs no restart.
func (i *issuer) oauth(in *SignIn) (*oauth2.Config, *oidc.Provider, error) {
	provider, err := i.discover()
	if err != nil {
		return nil, nil, err
	}
	c := &oauth2.Config{
		ClientID: i.clientID, Endpoint: provider.Endpoint(), RedirectURL: in.Callback,
		Scopes: i.scopes,
	}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	if i.secretFile == "" {
		return c, provider, nil
	}
	secret, err := os.ReadFile(i.secretFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the secret of the client: %w", ErrUnavailable, err)
	}
	c.ClientSecret = strings.TrimSpace(string(secret))
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	// client_secret_basic is the default of OpenID Connect Discovery 1.0, section 3.
	if err := provider.Claims(&says); err == nil && (len(says.Methods) == 0 ||
		slices.Contains(says.Methods, "client_secret_basic")) {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	return c, provider, nil
}

// exchange returns the access token and the ID token that the issuer gives for a code. It refuses
// an ID token that does not belong to the sign-in.
func (i *issuer) exchange(ctx context.Context, code string, in *SignIn) ([]string, error) {
	oauth, provider, err := i.oauth(in)
	if err != nil {
		return nil, err
	}
	token, err := oauth.Exchange(oidc.ClientContext(ctx, i.client), code,
		oauth2.VerifierOption(in.Verifier))
	if err != nil {
		return nil, notExchanged(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: i.clientID}).Verify(ctx, raw)
	switch {
	case err != nil && errors.Is(refusal(err), ErrUnavailable):
		return nil, refusal(err)
	case err != nil:
		return nil, fmt.Errorf("%w: there is no ID token of it for this client", ErrRefused)
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(in.Nonce)) != 1:
		return nil, fmt.Errorf("%w: the ID token is for another sign-in", ErrRefused)
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return nil, fmt.Errorf("%w: the access token is not that of the ID token", ErrRefused)
	}
	return []string{token.AccessToken, raw}, nil
}

// notExchanged distinguishes an issuer that refuses from one that does not answer. Of the issuer's
// error only the code of RFC 6749, section 5.2, is kept.
func notExchanged(err error) error {
	no, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && no.Response.StatusCode < 500:
		return fmt.Errorf("%w: %s", ErrRefused, word(no.ErrorCode))
	case ok:
		return fmt.Errorf("%w: the issuer answers with status %d", ErrUnavailable,
			no.Response.StatusCode)
	}
	return fmt.Errorf("%w: the issuer gives no tokens", ErrUnavailable)
}

// word returns an error code of OAuth 2.0, or a fixed text for anything else: anybody can write
// anything into the URL of the callback.
func word(code string) string {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }
	if code == "" || len(code) > 64 || strings.ContainsFunc(code, odd) {
		return "without a reason"
	}
	return code
}
