package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"

	"dispatcher/provider/settings"
)

// Defaults of the settings that have one.
const (
	DefaultTimeout        = 10 * time.Second
	DefaultConnectTimeout = 5 * time.Second
	DefaultConnections    = 100
)

const (
	maxConnections = 2000
	// idleTimeout is how long an unused connection is kept: less than most servers keep theirs, so
	// that a request rarely meets a connection that the server is closing.
	idleTimeout = 20 * time.Second
	// maxHeader and maxAnswer bound an answer, in bytes.
	maxHeader = 64 << 10
	maxAnswer = 1 << 20
)

// Config is how to reach an API. The zero value of an optional field is its default.
type Config struct {
	// BaseURL is the base of the API, such as "https://api.example.com"; requests of the adapter
	// name paths below it.
	BaseURL *url.URL
	// Timeout bounds a whole call.
	Timeout time.Duration
	// ConnectTimeout bounds the dial and the TLS handshake.
	ConnectTimeout time.Duration
	// Connections is how many requests may be in flight at once.
	Connections int
	// Proxy is used if set; the environment's proxy never is.
	Proxy *url.URL
	// AllowPrivate lets requests go to addresses of private networks and to this machine.
	AllowPrivate bool
	// TLS is for https; nil means the system's authorities.
	TLS *tls.Config
	// Dial replaces the TCP dial in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// ParseConfig reads the settings that all HTTP adapters share. base is where the vendor's own API
// begins; if it is empty, base_url is required.
//
//	base_url              where the API begins, when not at the vendor's own address
//	timeout               until a call without answer is Unknown (10s)
//	connect_timeout       (5s)
//	connections           calls under way at once (100)
//	proxy                 URL of an HTTP proxy, such as http://proxy:3128; none unless set
//	proxy_user, proxy_password_file
//	allow_private         true lets requests go to private networks and to this machine
//	tls_ca_file, tls_server_name, tls_cert_file, tls_key_file
func ParseConfig(r *settings.Reader, base string) Config {
	cfg := Config{
		Timeout: r.Duration("timeout"), ConnectTimeout: r.Duration("connect_timeout"),
		Connections:  r.Integer("connections", 1, maxConnections),
		AllowPrivate: r.Flag("allow_private"),
		TLS:          r.ClientTLS(),
	}
	if address := r.Text("base_url"); address != "" {
		base = address
	}
	var err error
	if cfg.BaseURL, err = parseURL(base); err != nil {
		r.Fail("base_url", err)
	}
	cfg.Proxy = parseProxy(r)
	return cfg
}

func parseProxy(r *settings.Reader) *url.URL {
	address, user := r.Text("proxy"), r.Text("proxy_user")
	password := strings.TrimRight(string(r.File("proxy_password_file")), "\r\n")
	if address == "" {
		if user != "" || password != "" {
			r.Failf("proxy", "is missing while other proxy_ settings are set")
		}
		return nil
	}
	proxy, err := parseURL(address)
	if err != nil {
		r.Fail("proxy", err)
		return nil
	}
	if user != "" {
		proxy.User = url.UserPassword(user, password)
	}
	return proxy
}

// parseURL takes an absolute http or https URL without credentials, query and fragment.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New(
			"is missing; write where the API begins, such as https://api.example.com")
	case err != nil: // its text would show the address, which may hold a password
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("is not an address such as https://api.example.com")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		return nil, errors.New(
			"names a host outside ASCII; write it as DNS has it, which begins with xn--")
	case u.User != nil:
		return nil, errors.New(
			"holds a user or a password; secrets do not belong into the routing document")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("has a query or a fragment; write only where the API begins")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// Validate reports invalid settings, each fault under its key.
func (c *Config) Validate() error {
	if c.BaseURL == nil {
		return errors.New("base_url: is missing")
	}
	if c.Connections < 0 || c.Connections > maxConnections {
		return fmt.Errorf("connections: %d is not between 1 and %d", c.Connections, maxConnections)
	}
	return nil
}
