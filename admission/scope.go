package admission

import (
	"fmt"
	"strings"
)

// Scope says which messages a limit counts. The zero Scope counts all. At most one field is set.
type Scope struct {
	Tenant string // messages of this tenant
	Prefix string // messages to numbers with this beginning, plus included
}

// Texts of scopes in the database and in audit.limit_windows.
const (
	wholeScope   = "channel"
	tenantPrefix = "tenant:"
	prefixPrefix = "prefix:"
)

// String is "channel", "tenant:NAME" or "prefix:+44".
func (s Scope) String() string {
	switch {
	case s.Tenant != "":
		return tenantPrefix + s.Tenant
	case s.Prefix != "":
		return prefixPrefix + s.Prefix
	}
	return wholeScope
}

// ParseScope reads what String writes.
func ParseScope(text string) (Scope, error) {
	if tenant, ok := strings.CutPrefix(text, tenantPrefix); ok && tenant != "" {
		return Scope{Tenant: tenant}, nil
	}
	if prefix, ok := strings.CutPrefix(text, prefixPrefix); ok && prefix != "" {
		return Scope{Prefix: prefix}, nil
	}
	if text == wholeScope {
		return Scope{}, nil
	}
	return Scope{}, fmt.Errorf("scope %q is none of channel, tenant:NAME, prefix:+NUMBER", text)
}

// Covers reports whether the scope counts a message of this tenant to this number.
func (s Scope) Covers(tenant, number string) bool {
	switch {
	case s.Tenant != "":
		return s.Tenant == tenant
	case s.Prefix != "":
		return strings.HasPrefix(number, s.Prefix)
	}
	return true
}
