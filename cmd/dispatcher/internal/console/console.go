// Package console is the admin HTTP server: metrics, liveness, readiness and profiles. It shows no
// phone number and no text.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is one condition of readiness.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail says what is wrong; when OK, it may hold a note.
	Detail string `json:"detail,omitempty"`
	// Since is when the check began to fail; nil when OK.
	Since *time.Time `json:"since,omitempty"`
	// Fix is what to do about it; empty when OK.
	Fix string `json:"fix,omitempty"`
	// Vital marks a condition without which the process is not ready.
	Vital bool `json:"vital"`
}

// Config is what the Server needs.
type Config struct {
	Address  string // host:port
	Registry *prometheus.Registry
	// Ready lists the conditions of readiness. It must answer within ctx.
	Ready   func(ctx context.Context) []Check
	Version string
	// Handler returns the handler of all other paths: the API and the pages. It returns nil while
	// those are not ready. When Handler is nil, "/" is an index.
	Handler func() http.Handler
}

// idleTimeout is longer than what usual proxies keep an idle connection for. A proxy would send a
// request over a connection that is just being closed, and does not repeat a POST.
const idleTimeout = 11 * time.Minute

// readyTimeout bounds the checks behind /readyz.
const readyTimeout = 3 * time.Second

// Server listens on the admin address.
type Server struct {
	http   *http.Server
	listen net.Listener
	done   chan struct{}
}

// Listen opens the admin address and serves until Close. An address in use is an error
// that names it.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf(
			"cannot listen on %s (DISPATCHER_LISTEN): %w; choose another address or stop what "+
				"uses it",
			cfg.Address,
			err,
		)
	}
	s := &Server{
		http: &http.Server{
			Handler: timely(handler(&cfg), bodyTimeout), ReadHeaderTimeout: 5 * time.Second,
			IdleTimeout: idleTimeout,
		},
		listen: listener,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // always http.ErrServerClosed: Close ended it
	}()
	return s, nil
}

// URL is where the server can be reached.
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() }

// Close waits for the open requests and stops the server. When ctx ends first, it cuts them off and
// returns no error.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.done
	return err
}

func handler(cfg *Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "alive", "version": cfg.Version})
	})
	mux.HandleFunc("GET /readyz", cfg.readyz)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if cfg.Handler != nil {
		mux.HandleFunc("/", cfg.late)
	} else {
		mux.HandleFunc("GET /{$}", cfg.index)
	}
	return mux
}

// late passes a request on to Handler, which exists once the process has reached its database.
func (cfg *Config) late(w http.ResponseWriter, r *http.Request) {
	if next := cfg.Handler(); next != nil {
		next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"title":"Service Unavailable","status":503,"detail":"the process `+
		`is starting: it waits for its database"}`+"\n")
}

// readiness is the body of readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// readyz answers 200 when every vital check passes, else 503; the body lists them all.
func (cfg *Config) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	checks, status := cfg.Ready(ctx), http.StatusOK
	for _, c := range checks {
		if c.Vital && !c.OK {
			status = http.StatusServiceUnavailable
		}
	}
	writeJSON(w, status, readiness{Ready: status == http.StatusOK, Checks: checks})
}

const indexPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>SMS dispatcher</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#222}
h1{font-size:1.4rem}dt{font-weight:600;margin-top:.8rem}dd{margin:0}a{color:#0b57d0}</style>
<h1>SMS dispatcher <small>%s</small></h1>
<dl>
<dt><a href="/readyz">/readyz</a>
<dd>Can this instance work? Each condition, what is wrong, and what to do.
<dt><a href="/healthz">/healthz</a>
<dd>Does the process run? It says alive during an outage too: a restart would not help.
<dt><a href="/metrics">/metrics</a>
<dd>Prometheus metrics.
<dt><a href="/debug/pprof/">/debug/pprof/</a>
<dd>Profiles of the running process.
</dl></html>
`

func (cfg *Config) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, indexPage, cfg.Version)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(body) // fails only if the client has disconnected
}
