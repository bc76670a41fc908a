package receive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // net/http takes its log in no other form.
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/provider"
)

// Channels finds the reader of a channel's callbacks.
type Channels interface {
	// Listener is called once for each callback and must not block. known is false for a channel
	// that the routing in force does not have, or whose provider makes no callbacks. The listener of
	// a known channel is nil while its settings cannot be used on this machine.
	Listener(channel string) (l provider.CallbackReader, known bool)
}

// Recorder stores the content of callbacks.
type Recorder interface {
	// Record returns nil once all of content is durable. After an error the provider is asked to call
	// again, so Record must be idempotent.
	Record(ctx context.Context, channel string, content *provider.CallbackContent) error
}

// WebhookConfig is what Webhooks need.
type WebhookConfig struct {
	Address string // host:port
	// PublicURL is the URL of the listener as providers see it, without a slash at the end; empty
	// when they use its own address. It is needed behind a proxy, because some providers sign the URL
	// and the Host of a request may be the proxy's.
	PublicURL string
	// TLS is nil for plain HTTP. With ClientCAs, certificates of clients are verified.
	TLS      *tls.Config
	Channels Channels
	Recorder Recorder
	Registry prometheus.Registerer
	// Trouble is called with every error of a callback, which may be very often.
	Trouble func(where string, err error)
}

// Bounds of one listener. A connection carries one request at a time, so maxConnections also bounds
// the concurrent callbacks.
const (
	maxConnections = 1024
	maxHeader      = 32 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second // of a whole request
	writeTimeout   = 15 * time.Second // from the end of its header
	idleTimeout    = 30 * time.Second
	// recordTimeout bounds a write. After it the provider is asked to call again. Every provider
	// waits longer for an answer.
	recordTimeout = 1500 * time.Millisecond
	// confirmTimeout bounds the confirmation of a subscription, see confirmer.
	confirmTimeout = 5 * time.Second
)

// Webhooks is the HTTP listener for callbacks of providers. It reads none before Serve.
type Webhooks struct {
	cfg      WebhookConfig
	base     string // what callbacks' URLs begin with
	listener net.Listener
	server   *http.Server
	metrics  *webhookMetrics
	replays  *replays
	unknown  *unknownChannels
	large    chan struct{} // one token for each large body in memory
	done     chan struct{} // closed when serving has ended; nil before Serve
}

// ListenWebhooks opens the address. The error of an address in use names it.
func ListenWebhooks(ctx context.Context, cfg WebhookConfig) (*Webhooks, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (DISPATCHER_RECEIPTS_LISTEN): %w; choose "+
			"another address or stop what uses it", cfg.Address, err)
	}
	w := &Webhooks{
		cfg: cfg, listener: listener, metrics: newWebhookMetrics(cfg.Registry),
		replays: newReplays(), unknown: &unknownChannels{}, large: make(chan struct{}, maxLarge),
	}
	w.base = cfg.PublicURL
	if w.base == "" {
		w.base = w.URL()
	}
	var onlyHTTP1 http.Protocols
	onlyHTTP1.SetHTTP1(true)
	w.server = &http.Server{
		Handler: w, TLSConfig: cfg.TLS, Protocols: &onlyHTTP1,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader, ConnContext: withConn, ConnState: follow,
		ErrorLog: log.New(io.Discard, "",
			0), // discarded: anybody can cause errors on a public port; the metrics count them
	}
	return w, nil
}

// Serve answers callbacks in the background until Close.
func (w *Webhooks) Serve() {
	bounded := newBounded(w.listener, maxConnections, maxUnreceived)
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		if w.cfg.TLS != nil {
			_ = w.server.ServeTLS(bounded, "", "") // always http.ErrServerClosed: Close ended it
			return
		}
		_ = w.server.Serve(bounded)
	}()
}

// URL is the listener's own address on this machine.
func (w *Webhooks) URL() string {
	scheme := "http://"
	if w.cfg.TLS != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(w.listener.Addr().String())
	if err != nil {
		return scheme + w.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}

// Callback is the URL that the provider of a channel must call.
func (w *Webhooks) Callback(channel string) string { return w.base + callbackPath + channel }

// Close waits for the callbacks under way and stops the listener. When ctx ends first, it cuts them
// off and returns no error, because their providers call again. It is idempotent.
func (w *Webhooks) Close(ctx context.Context) error {
	if w.done == nil {
		if err := w.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	err := w.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = w.server.Close()
	}
	<-w.done
	return err
}

// callbackPath is the prefix of the path of each callback, before the name of the channel.
const callbackPath = "/receipts/"

// channelOf is the channel that a path names.
func channelOf(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, callbackPath)
	return name, ok && name != "" && !strings.Contains(name, "/")
}
