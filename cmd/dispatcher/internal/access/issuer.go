package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// issuerTimeout bounds a call of the issuer.
	issuerTimeout = 5 * time.Second
	// issuerPause is the wait after a failed discovery, before the issuer is called again.
	issuerPause = 5 * time.Second
)

// issuer verifies the tokens of an OpenID Connect issuer: signature, issuer, audience and expiry.
type issuer struct {
	url, audience string
	rolesClaim    []string
	roleOf        map[string]Role
	nameClaim     string
	tenantClaim   string
	clientID      string // of the console; empty if nobody signs in at the issuer
	secretFile    string
	scopes        []string
	client        *http.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil until the issuer has answered once
	failed   error          // why the last discovery failed
	failedAt time.Time
}

func newIssuer(cfg *Config) (*issuer, error) {
	if err := CheckIssuer(cfg.OIDCIssuer); err != nil {
		return nil, err
	}
	if cfg.OIDCAudience == "" {
		return nil, errors.New("an audience is missing: without it any token of the issuer, made " +
			"for another program, would be valid here")
	}
	i := &issuer{
		url: cfg.OIDCIssuer, audience: cfg.OIDCAudience,
		rolesClaim: strings.Split(cfg.OIDCRolesClaim, "."), nameClaim: cfg.OIDCNameClaim,
		tenantClaim: cfg.OIDCTenantClaim,
		roleOf:      map[string]Role{}, client: &http.Client{Timeout: issuerTimeout},
		clientID: cfg.OIDCClientID, secretFile: cfg.OIDCClientSecretFile, scopes: cfg.OIDCScopes,
	}
	for value, name := range cfg.OIDCRoleMap {
		role, err := ParseRole(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		i.roleOf[strings.TrimSpace(value)] = role
	}
	if len(i.roleOf) == 0 {
		for _, n := range roleNames {
			i.roleOf[n.name] = n.role
		}
	}
	if cfg.OIDCRolesClaim == "" {
		i.rolesClaim = []string{DefaultRolesClaim}
	}
	if i.nameClaim == "" {
		i.nameClaim = DefaultNameClaim
	}
	return i, nil
}

// The claims that are read unless others are configured. The default name is the subject, because
// an issuer never gives it to another person.
const (
	DefaultRolesClaim = "roles"
	DefaultNameClaim  = "sub"
)

// CheckIssuer refuses the URL of an issuer without TLS, except on loopback: on the way, somebody
// could replace its keys.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("the issuer is not a URL such as https://login.example.com/realms/sms")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("the issuer must have an https URL")
}

// IsLoopback reports whether a host, given without a port, is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// discover returns the provider configuration of the issuer, which it reads once.
func (i *issuer) discover() (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.provider != nil:
		return i.provider, nil
	case i.failed != nil && time.Since(i.failedAt) < issuerPause:
		return nil, i.failed
	}
	// The provider keeps the context to fetch keys later, so it must not end with a request.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.url)
	if err != nil {
		i.failed, i.failedAt = fmt.Errorf("%w: the issuer: %w", ErrUnavailable, err), time.Now()
		return nil, i.failed
	}
	i.provider = provider
	return provider, nil
}

func (i *issuer) principal(ctx context.Context, raw string) (Principal, error) {
	provider, err := i.discover()
	if err != nil {
		return Principal{}, err
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: i.audience})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return Principal{}, refusal(err)
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Principal{}, ErrUnauthenticated
	}
	name := i.name(token.Subject, claims)
	if name == "" {
		return Principal{}, ErrUnauthenticated
	}
	role := i.role(claims)
	if role == None {
		return Principal{Name: name}, ErrNoRole
	}
	who := Principal{Name: name, Role: role}
	if i.tenantClaim != "" && role&Sender != 0 {
		// Without a tenant, the sender could send for all tenants.
		if who.Tenant, _ = claims[i.tenantClaim].(string); who.Tenant == "" {
			return Principal{Name: name}, ErrNoRole
		}
	}
	return who, nil
}

// refusal distinguishes an invalid token from keys that could not be fetched, by the text of the
// error, because the library has no type for the latter. The text is not passed on: it may quote
// the token.
func refusal(err error) error {
	if strings.Contains(err.Error(), "fetching keys") {
		return fmt.Errorf("%w: the issuer's keys cannot be fetched", ErrUnavailable)
	}
	return ErrUnauthenticated
}

// name is the value of the configured claim. An e-mail address is used only if the issuer has
// verified it, because some issuers let people put any address into their profile.
func (i *issuer) name(subject string, claims map[string]any) string {
	name := subject
	if i.nameClaim != DefaultNameClaim {
		name, _ = claims[i.nameClaim].(string)
	}
	if i.nameClaim == "email" && claims["email_verified"] != true {
		return ""
	}
	if checkName(name) != nil {
		return ""
	}
	return name
}

// role combines the roles of all values of the claim, which is a string or a list of strings.
func (i *issuer) role(claims map[string]any) Role {
	var at any = claims
	for _, level := range i.rolesClaim {
		object, ok := at.(map[string]any)
		if !ok {
			return None
		}
		at = object[level]
	}
	var role Role
	switch values := at.(type) {
	case string:
		role = i.roleOf[values]
	case []any:
		for _, v := range values {
			if s, ok := v.(string); ok {
				role |= i.roleOf[s]
			}
		}
	}
	return role
}
