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

// Channels says who reads the callbacks of a channel.
type Channels interface {
	// Listener is asked once for each callback. known is false for a channel that the routing in
	// force does not have, or whose provider never calls; the listener of a known one is nil while
	// its settings cannot be used on this machine. It does not block.
	Listener(channel string) (l provider.CallbackReader, known bool)
}

// Booker writes down what callbacks say.
type Booker interface {
	// Book returns nil once everything that was heard is durable. After an error the provider is
	// asked to call again, so that some of it may be booked twice: booking has to bear that.
	Book(ctx context.Context, channel string, heard *provider.CallbackContent) error
}

// WebhookConfig says where providers call and what becomes of it.
type WebhookConfig struct {
	Address string // host:port
	// PublicURL is where providers see the listener, without a slash at the end; empty when it is
	// called under its own address. Behind a proxy the Host of a request tells nothing, and some
	// providers sign the URL.
	PublicURL string
	// TLS encrypts; nil serves plain HTTP. With ClientCAs, certificates of clients are verified.
	TLS      *tls.Config
	Channels Channels
	Booker   Booker
	Registry prometheus.Registerer
	// Trouble is called with what is wrong with callbacks, at any rate; see the callbacks' metrics
	// for counts.
	Trouble func(where string, err error)
}

// Bounds of one listener. A connection carries one request at a time, so they bound the callbacks
// under way too.
const (
	maxConnections = 1024
	maxHeader      = 32 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second // of a whole request
	writeTimeout   = 15 * time.Second // from the end of its header
	idleTimeout    = 30 * time.Second
	// bookTimeout is how long a provider waits for the database before it is asked to call again:
	// less than any of them waits by itself.
	bookTimeout = 1500 * time.Millisecond
	// confirmTimeout is how long the question whether calls are wanted may take to answer.
	confirmTimeout = 5 * time.Second
)

// Webhooks is the listener that providers call. It reads no callback before Serve.
type Webhooks struct {
	cfg      WebhookConfig
	base     string // what callbacks' URLs begin with
	listener net.Listener
	server   *http.Server
	metrics  *webhookMetrics
	replays  *replays
	unknown  *unknownChannels
	large    chan struct{} // one token for each long body in memory
	done     chan struct{} // closed when serve has ended; nil before Serve
}

// ListenWebhooks opens the address. One in use is an error that names it.
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
			0), // whatever strangers do to a public port; the metrics count it
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

// URL is the listener's own address, as this machine sees it.
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

// Callback is the address at which the provider of a channel is to call.
func (w *Webhooks) Callback(channel string) string { return w.base + callbackPath + channel }

// Close ends the listener after the callbacks under way; when ctx ends first it cuts them off,
// which is no error: their providers call again. It is idempotent.
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

// callbackPath is what the path of each callback begins with; the name of its channel follows.
const callbackPath = "/receipts/"

// channelOf is the channel that a path names.
func channelOf(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, callbackPath)
	return name, ok && name != "" && !strings.Contains(name, "/")
}
