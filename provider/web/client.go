package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"dispatcher/provider"
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

// Client makes calls to one API. It is safe for concurrent use. Every call is at most one request on
// the wire: net/http would resend a GET, or a POST that it takes for idempotent, when a kept
// connection dies before the answer. Here GET requests use a connection of their own, and bodies cannot be
// read a second time.
type Client struct {
	cfg  Config
	keep *http.Client // for requests with a body
	once *http.Client // for those without
}

// NewClient returns a client; its connections come up with the first calls.
func NewClient(cfg Config) *Client {
	cfg.Timeout = orElse(cfg.Timeout, DefaultTimeout)
	cfg.ConnectTimeout = orElse(cfg.ConnectTimeout, DefaultConnectTimeout)
	cfg.Connections = orElse(cfg.Connections, DefaultConnections)
	once := NewTransport(&cfg)
	once.DisableKeepAlives, once.ForceAttemptHTTP2 = true, false
	once.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &Client{cfg: cfg, keep: &http.Client{Transport: NewTransport(&cfg), CheckRedirect: Stay}, once: &http.Client{Transport: once, CheckRedirect: Stay}}
}

// Stay is the CheckRedirect that makes a redirect an answer: what is sent goes to the configured address and to no other.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewTransport makes connections by the rules of a Config: no proxy but the configured one, and no address of a private
// network unless that is allowed, whatever a name resolves to. Scoring functions are called by the same rules.
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
		DialContext: counted(dial), TLSClientConfig: secure, TLSHandshakeTimeout: cfg.ConnectTimeout,
		ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost: cfg.Connections, MaxIdleConnsPerHost: cfg.Connections, IdleConnTimeout: idleTimeout,
	}
	if cfg.Proxy != nil {
		t.Proxy = http.ProxyURL(cfg.Proxy)
	}
	return t
}

// Close drops the connections that are idle.
func (c *Client) Close() {
	c.keep.CloseIdleConnections()
	c.once.CloseIdleConnections()
}

// Call makes a request and returns the answer, or the result of a call that got none: Refused when no byte
// can have left, Unknown otherwise. It heeds latest as Submission.Latest; zero does not bound it.
func (c *Client) Call(ctx context.Context, latest time.Time, req *Request) (*Answer, *provider.Result) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for tries := 1; ; tries++ {
		call := &call{latest: latest}
		answer, err := c.try(ctx, call, req)
		if err == nil {
			return answer, nil
		}
		if tries == mostTries || !call.stale() || ctx.Err() != nil {
			return nil, call.failure(ctx, err)
		}
	}
}

// mostTries bounds how many kept connections in a row may turn out to be dead. Each failure removes one, and
// whoever closes them closes all that were idle, which the transport notices by itself: more than one in a row is rare.
const mostTries = 4

// try sends the request once.
func (c *Client) try(ctx context.Context, call *call, req *Request) (*Answer, error) {
	if !call.latest.IsZero() && !time.Now().Before(call.latest) {
		call.late.Store(true)
		return nil, context.DeadlineExceeded
	}
	ctx, stop := call.trace(ctx)
	defer stop()
	request, err := c.request(ctx, req)
	if err != nil {
		return nil, err
	}
	client := c.keep
	if len(req.Body) == 0 {
		client = c.once
	}
	response, err := client.Do(request)
	if err != nil {
		call.ended.Store(ctx.Err() != nil)
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read as far as it is wanted
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLong
	}
	if err != nil {
		return nil, err
	}
	return &Answer{Status: response.StatusCode, Header: response.Header, Body: body, At: time.Now()}, nil
}

var errTooLong = errors.New("the answer is longer than 1 MiB")

// once is a body that can be read once, so that net/http cannot send it a second time.
type once struct{ io.Reader }

func (c *Client) request(ctx context.Context, req *Request) (*http.Request, error) {
	target, err := c.target(req.URL)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, req.Method, target, http.NoBody)
	if err != nil {
		return nil, err
	}
	if req.Header != nil {
		r.Header = req.Header.Clone()
	}
	if len(req.Body) > 0 {
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(once{bytes.NewReader(req.Body)}), int64(len(req.Body)), nil
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "sms-dispatcher")
	}
	return r, nil
}

// target puts a path below the base.
func (c *Client) target(address string) (string, error) {
	if u, err := url.Parse(address); err == nil && u.IsAbs() {
		return address, nil
	}
	if c.cfg.BaseURL == nil {
		return "", errors.New("no base URL")
	}
	return c.cfg.BaseURL.String() + address, nil
}
