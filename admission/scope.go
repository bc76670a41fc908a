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

// On is how a limit is displayed: "alpha 1s messages" for one of a channel, "alpha tenant:shop 1d
// segments" for a narrower one there, "tenant:shop 1d money" over all channels.
func (k Key) On(channel string) string {
	var parts []string
	if channel != "" {
		parts = append(parts, channel)
	}
	if k.Scope != (Scope{}) {
		parts = append(parts, k.Scope.String())
	}
	return strings.Join(append(parts, k.Window.String(), k.Unit.String()), " ")
}

// ParseOn reads what On writes. It is false for any other text, such as the name of a channel
// alone.
func ParseOn(text string) (channel string, k Key, ok bool) {
	rest, unit, ok := cutLast(text)
	if !ok {
		return "", Key{}, false
	}
	rest, window, ok := cutLast(rest)
	if !ok {
		return "", Key{}, false
	}
	var err error
	if k.Unit, err = ParseUnit(unit); err != nil || unit == "" {
		return "", Key{}, false
	}
	if k.Window, err = ParseWindow(window); err != nil {
		return "", Key{}, false
	}
	if scope, err := ParseScope(rest); err == nil && scope != (Scope{}) {
		k.Scope = scope
		return "", k, true
	}
	channel, narrower, narrow := strings.Cut(rest, " ")
	if narrow {
		if k.Scope, err = ParseScope(narrower); err != nil {
			return "", Key{}, false
		}
	}
	return channel, k, channel != ""
}

// cutLast cuts around the last space.
func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndexByte(s, ' ')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}
