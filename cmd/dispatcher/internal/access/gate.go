// Package access authenticates callers of the HTTP API and the console, and bounds what each of
// them takes of the process. A token, from a file or from an OpenID Connect issuer, belongs to a
// principal with a name and a role. Whether the role allows a request is for the caller to check,
// by Role.May.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Errors of Authenticate and Token.
var (
	// ErrUnauthenticated means that there is no token, or that it is not valid.
	ErrUnauthenticated = errors.New("the token is missing or not valid")
	// ErrNoRole means that the token of the issuer is valid, but has no role of ours.
	ErrNoRole = errors.New("the token gives no role")
	// ErrUnavailable means that the token cannot be checked now, because the file of tokens cannot
	// be read or the issuer does not answer.
	ErrUnavailable = errors.New("tokens cannot be checked now")
)

// Principal is an authenticated caller.
type Principal struct {
	Name string // the author of its changes, in the history
	Role Role
	// Tenant is the only tenant for which the principal may send; empty for all.
	Tenant string
	// Lanes are the lanes of its messages, and Prefix is how their ids begin.
	Lanes  Lanes
	Prefix string
}

// Lanes is a list of lanes with commas between them; empty for all.
type Lanes string

// Has reports whether a lane is in the list.
func (l Lanes) Has(lane string) bool {
	return l == "" || slices.Contains(strings.Split(string(l), ","), lane)
}

// Config says which tokens are valid.
type Config struct {
	TokensFile string // see tokens.go; empty for none
	// OIDCIssuer is the URL of an issuer, and OIDCAudience the audience that its tokens must have.
	OIDCIssuer, OIDCAudience string
	// OIDCRolesClaim is the claim with the roles, with a dot for each level: "realm_access.roles".
	// OIDCRoleMap maps its values to names of roles; without it the values are names of roles.
	OIDCRolesClaim string
	OIDCRoleMap    map[string]string
	// OIDCNameClaim is the claim with the name of the principal.
	OIDCNameClaim string
	// OIDCTenantClaim is the claim with the tenant that a sender is bound to; a sender's token
	// without it gets no role. When it is empty, senders of the issuer may send for all tenants.
	OIDCTenantClaim string
	// OIDCClientID is the client id of the console at the issuer; empty turns sign-in there off.
	// OIDCClientSecretFile is empty for a public client. OIDCScopes are the scopes to request.
	OIDCClientID         string
	OIDCClientSecretFile string
	OIDCScopes           []string
	// Embedded is a token with all rights, for a process with embedded servers; empty for none.
	Embedded string
	// Rate bounds the requests of a principal; the zero value is 20 a second, 100 at once.
	Rate Rate
}

// EmbeddedName is the name of the principal that has the embedded token.
const EmbeddedName = "embedded"

// Gate checks tokens, and bounds how often their principals ask. Its methods may be called at the
// same time.
type Gate struct {
	tokens   *tokenFile // nil without one
	issuer   *issuer    // nil without one
	embedded []byte     // hash of the embedded token; nil without one

	rates   *rates
	streams *Shares
}

// New checks the configuration and reads the file of tokens. It does not call the issuer, so that a
// process can start while the issuer is unavailable; the first token of the issuer does.
func New(cfg Config) (*Gate, error) {
	g := &Gate{rates: newRates(cfg.Rate), streams: NewShares(mostStreams, streamsForEach)}
	if cfg.TokensFile != "" {
		g.tokens = &tokenFile{path: cfg.TokensFile}
		if _, err := g.tokens.read(); err != nil {
			return nil, err
		}
	}
	if cfg.OIDCIssuer != "" {
		var err error
		if g.issuer, err = newIssuer(&cfg); err != nil {
			return nil, err
		}
	}
	if cfg.Embedded != "" {
		sum := sha256.Sum256([]byte(cfg.Embedded))
		g.embedded = sum[:]
	}
	return g, nil
}

// Enabled reports whether any token can be valid. If none can, the API and the console are off.
func (g *Gate) Enabled() bool {
	return g != nil && (g.tokens != nil || g.issuer != nil || g.embedded != nil)
}

// Authenticate returns the principal of a request, by its header Authorization: Bearer.
func (g *Gate) Authenticate(r *http.Request) (Principal, error) {
	header := r.Header.Values("Authorization")
	if len(header) != 1 {
		return Principal{}, ErrUnauthenticated
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Principal{}, ErrUnauthenticated
	}
	return g.Token(r.Context(), strings.TrimSpace(token))
}

// longestToken bounds the size of a token, in bytes.
const longestToken = 16 << 10

// Token returns the principal that a token belongs to. The error holds no part of the token.
func (g *Gate) Token(ctx context.Context, token string) (Principal, error) {
	if !g.Enabled() || token == "" || len(token) > longestToken {
		return Principal{}, ErrUnauthenticated
	}
	hash := sha256.Sum256([]byte(token))
	if g.embedded != nil && subtle.ConstantTimeCompare(hash[:], g.embedded) == 1 {
		return Principal{Name: EmbeddedName, Role: Admin}, nil
	}
	// The tokens of the file have no dot, those of an issuer have two.
	if g.issuer != nil && strings.Count(token, ".") == 2 {
		return g.issuer.principal(ctx, token)
	}
	if g.tokens == nil {
		return Principal{}, ErrUnauthenticated
	}
	return g.tokens.principal(hash)
}
