package web

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Request is an HTTP request of an adapter.
type Request struct {
	Method string
	// URL is absolute, or a path with an optional query below Config.BaseURL.
	URL    string
	Header http.Header
	Body   []byte
}

// Answer is the API's answer.
type Answer struct {
	Status int
	Header http.Header
	// Body is complete; a body of more than 1 MiB counts as no answer.
	Body []byte
	// At is when it arrived, on this machine's clock.
	At time.Time
	// OwnSender is the Submission.OwnSender of the submission.
	OwnSender bool
}

// Client makes calls to one API. It is safe for concurrent use. Every call is at most one request
// on the wire, over an HTTP/1.1 connection that it uses alone: http.Client would repeat a GET, or a
// POST that it considers idempotent, if a kept connection breaks before the answer, and over HTTP/2
// only net/http knows when a request leaves.
type Client struct {
	cfg   Config
	slots chan struct{} // holds one value for each call in flight
	idle  idleConns
}

// NewClient returns a client; its connections are made by the first calls.
func NewClient(cfg Config) *Client {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, DefaultConnectTimeout)
	cfg.Connections = cmp.Or(cfg.Connections, DefaultConnections)
	return &Client{
		cfg: cfg, slots: make(chan struct{}, cfg.Connections),
		idle: idleConns{by: map[string][]*conn{}},
	}
}

// NoRedirect is a CheckRedirect that returns a redirect as the answer: a request goes to the
// configured address and to no other.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewTransport connects by the rules of a Config: only through the configured proxy, and to no
// address of a private network unless allowed, whatever a name resolves to. Scoring functions use
// the same rules.
func NewTransport(cfg *Config) *http.Transport {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: idleTimeout}
	if !cfg.AllowPrivate && cfg.Proxy == nil {
		dialer.Control = refusePrivate
	}
	dial := cfg.Dial
	if dial == nil {
		dial = dialer.DialContext
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	t := &http.Transport{
		DialContext: dial, TLSClientConfig: secure, TLSHandshakeTimeout: cfg.ConnectTimeout,
		ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	if cfg.Proxy != nil {
		t.Proxy = http.ProxyURL(cfg.Proxy)
	}
	return t
}

// Close closes idle connections at once, and those in use when their calls end.
func (c *Client) Close() { c.idle.close() }

var errTooLong = errors.New("the answer is longer than 1 MiB")

// body is the body of a request; nil if it is empty.
func body(r *Request) io.Reader {
	if len(r.Body) == 0 {
		return nil
	}
	return bytes.NewReader(r.Body)
}

// addHeader sets the header of a request.
func addHeader(r *http.Request, header http.Header) *http.Request {
	if header != nil {
		r.Header = header.Clone()
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "sms-dispatcher")
	}
	return r
}

// target resolves a path below the base URL.
func (c *Client) target(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && u.IsAbs() {
		return u, nil
	}
	if c.cfg.BaseURL == nil {
		return nil, errNoBase
	}
	if u, err = url.Parse(c.cfg.BaseURL.String() + address); err != nil {
		return nil, withoutURL(err)
	}
	return u, nil
}

var errNoBase = errors.New("no base URL")
