package web

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Request is one HTTP request that an adapter asks for.
type Request struct {
	Method string
	// URL is absolute, or a path with an optional query below Config.BaseURL.
	URL    string
	Header http.Header
	Body   []byte
}

// Answer is what the API said.
type Answer struct {
	Status int
	Header http.Header
	// Body is whole; one of more than 1 MiB counts as no answer.
	Body []byte
	// At is when it came, on this machine's clock.
	At time.Time
	// OwnSender is the Submission.OwnSender of the submission that it answers.
	OwnSender bool
}

// Client makes calls to one API. It is safe for concurrent use. Every call is at most one request
// on the wire, over a connection of HTTP/1.1 that it has for itself: http.Client would send a GET,
// or a POST that it takes for idempotent, once more when a kept connection dies before the answer,
// and over HTTP/2 nobody outside net/http knows when a request leaves.
type Client struct {
	cfg   Config
	slots chan struct{} // holds one value for each call under way
	idle  idleConns
}

// NewClient returns a client; its connections come up with the first calls.
func NewClient(cfg Config) *Client {
	cfg.Timeout = orElse(cfg.Timeout, DefaultTimeout)
	cfg.ConnectTimeout = orElse(cfg.ConnectTimeout, DefaultConnectTimeout)
	cfg.Connections = orElse(cfg.Connections, DefaultConnections)
	return &Client{
		cfg: cfg, slots: make(chan struct{}, cfg.Connections),
		idle: idleConns{by: map[string][]*conn{}},
	}
}

// NoRedirect is the CheckRedirect that makes a redirect an answer: what is sent goes to the
// configured address and to no other.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewTransport makes connections by the rules of a Config: no proxy but the configured one, and no
// address of a private network unless that is allowed, whatever a name resolves to. Scoring
// functions are called by the same rules.
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

// Close drops the connections that are idle, and those of calls under way when they end.
func (c *Client) Close() { c.idle.close() }

var errTooLong = errors.New("the answer is longer than 1 MiB")

// body is what a request has to say; nil when that is nothing.
func body(r *Request) io.Reader {
	if len(r.Body) == 0 {
		return nil
	}
	return bytes.NewReader(r.Body)
}

// addHeader gives a request its header.
func addHeader(r *http.Request, header http.Header) *http.Request {
	if header != nil {
		r.Header = header.Clone()
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "sms-dispatcher")
	}
	return r
}

// target puts a path below the base.
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
