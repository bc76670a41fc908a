package config

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
)

// Hidden stands for a secret wherever settings are shown.
const Hidden = "***"

// Setting is one line of the config command.
type Setting struct {
	// Name is the variable with its prefix.
	Name string `json:"name"`
	// Value is what the process uses, with secrets replaced by Hidden.
	Value string `json:"value"`
	// Source is "environment", "default", or "unset" when there is no value at all.
	Source string `json:"source"`
	// Help says what the setting means.
	Help string `json:"help"`
}

// List shows every setting in a fixed order. Sources are those of the process
// environment at the time of the call.
func (s *Settings) List() []Setting {
	fields := reflect.ValueOf(s).Elem()
	all := variables()
	out := make([]Setting, len(all))
	for i, v := range all {
		value := show(fields.Field(v.field))
		if v.secret == "connection" {
			value = RedactConnection(value)
		}
		out[i] = Setting{Name: v.name, Value: value, Source: source(v, value), Help: v.help}
	}
	return out
}

func source(v variable, value string) string {
	if set, ok := os.LookupEnv(v.name); ok && set != "" {
		return "environment"
	}
	if value == "" {
		return "unset"
	}
	return "default"
}

func show(v reflect.Value) string {
	if list, ok := reflect.TypeAssert[[]string](v); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v.Interface())
}

// libpqSecret finds the secrets of a key=value string, quoted or not.
var libpqSecret = regexp.MustCompile(`(?i)\b(\w*password)(\s*=\s*)('(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)+)`)

// RedactConnection hides the passwords in a libpq URL or key=value string. A URL that
// cannot be parsed is hidden whole.
func RedactConnection(s string) string {
	if !strings.Contains(s, "://") {
		return libpqSecret.ReplaceAllString(s, "${1}${2}"+Hidden)
	}
	u, err := url.Parse(s)
	if err != nil {
		return Hidden
	}
	query := u.Query()
	for key := range query {
		if strings.HasSuffix(strings.ToLower(key), "password") {
			query.Set(key, Hidden)
		}
	}
	if len(query) > 0 {
		u.RawQuery = query.Encode()
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), Hidden)
	}
	// The escaping of the three stars would only confuse.
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", Hidden)
}
