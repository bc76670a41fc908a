// Package access says who may use the HTTP API and the console, and as what: a token of a file, or
// a token of an OpenID Connect issuer, belongs to a principal with a name and a role. It makes no
// decision about a single request; its callers ask Role.May.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// Errors of Authenticate and Token.
var (
	// ErrUnauthenticated: there is no token, or nobody has this one.
	ErrUnauthenticated = errors.New("the token is missing or not valid")
	// ErrNoRole: the issuer knows the caller, and the caller's token has no role of ours.
	ErrNoRole = errors.New("the token gives no role")
	// ErrUnavailable: whether the token is valid cannot be told now, because the file of tokens
	// cannot be read or the issuer does not answer.
	ErrUnavailable = errors.New("tokens cannot be checked now")
)

// Principal is an authenticated caller.
type Principal struct {
	Name string // what the history of changes shows as the author
	Role Role
	// Tenant is the one for which the principal may send; empty for all.
	Tenant string
}

// Config says which tokens are valid.
type Config struct {
	TokensFile string // see tokens.go; empty for none
	// OIDCIssuer is the URL of an issuer, and OIDCAudience what its tokens must be made for.
	OIDCIssuer, OIDCAudience string
	// OIDCRolesClaim is the claim with the roles, with a dot for each level: "realm_access.roles".
	// OIDCRoleMap turns its values into names of roles; without it the values are these names.
	OIDCRolesClaim string
	OIDCRoleMap    map[string]string
	// OIDCNameClaim is the claim with the name of the principal.
	OIDCNameClaim string
	// OIDCTenantClaim is the claim with the tenant of a sender: a token of one must have it. Empty
	// leaves senders of the issuer without a bound.
	OIDCTenantClaim string
	// OIDCClientID is the console at the issuer, where people may sign in then; empty for none.
	// OIDCClientSecretFile is empty for a public client. OIDCScopes are asked for.
	OIDCClientID         string
	OIDCClientSecretFile string
	OIDCScopes           []string
	// Embedded is a token with all rights, for a process with its own servers; empty for none.
	Embedded string
}

// EmbeddedName is the name of the principal that has the embedded token.
const EmbeddedName = "embedded"

// Gate checks tokens. Its methods may be called at the same time.
type Gate struct {
	tokens   *tokenFile // nil without one
	issuer   *issuer    // nil without one
	embedded []byte     // hash of the embedded token; nil without one
}

// New checks the configuration and reads the file of tokens. The issuer is not called before the
// first token of it comes, so that a process starts while the issuer is away.
func New(cfg Config) (*Gate, error) {
	g := &Gate{}
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

// Enabled reports whether anybody can be let in. Without it the API and the console are off.
func (g *Gate) Enabled() bool {
	return g != nil && (g.tokens != nil || g.issuer != nil || g.embedded != nil)
}

// Authenticate says who makes the request, by its header Authorization: Bearer.
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

// longestToken bounds what is hashed and parsed.
const longestToken = 16 << 10

// Token says whose token it is. The error never holds any part of it.
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
