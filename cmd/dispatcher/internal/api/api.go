// Package api is the HTTP API for operators and their programs, /api/v1 on the admin address: what
// the commands show and change, with roles, and described by OpenAPI. It decides nothing by itself:
// reads are those of status and lookup, changes those of control. No response holds a phone number
// or a text.
package api

import (
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Base is where the API is.
const Base = "/api/v1"

// Config is what the API works on.
type Config struct {
	Gate   *access.Gate
	Ledger *ledger.Ledger
	// Keys are those of the draws: numbers are looked up by their hashes under them.
	Keys []selector.Key
	// DefaultRegion is the country of numbers without a country code; empty refuses them.
	DefaultRegion string
	// DeadAfter is how long an instance is silent before it counts as gone.
	DeadAfter time.Duration
	Log       zerolog.Logger
	// LiveEvery is how often the stream of counters looks; 0 is a second.
	LiveEvery time.Duration
	// Intake writes messages that senders hand over; nil leaves that operation out. IntakeMetrics
	// count them.
	Intake        Intake
	IntakeMetrics IntakeMetrics
	// Publish writes a dead record to its topic again.
	Publish control.Publish
	// AllowUnknown lets envelopes have unknown fields.
	AllowUnknown bool
	// Rate bounds the requests of a principal; the zero value is 20 a second, 100 at once.
	Rate Rate
}

// API serves the requests.
type API struct {
	cfg   Config
	huma  huma.API
	rates rates
	// topics are those that messages of senders are written to.
	topics laneTopics

	closing chan struct{} // closed by Close: streams end
	once    sync.Once
}

// New makes the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, rates: newRates(cfg.Rate), closing: make(chan struct{})}
	if a.cfg.LiveEvery <= 0 {
		a.cfg.LiveEvery = time.Second
	}
	return a
}

// Close ends the streams that are open, so that the HTTP server can stop.
func (a *API) Close() { a.once.Do(func() { close(a.closing) }) }

// Handler answers everything below Base.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	a.huma = humago.New(mux, humaConfig())
	a.huma.UseMiddleware(a.guard, a.noEmptyValues)
	a.routes()
	a.finish()
	mux.HandleFunc(Base+"/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := methods(mux, r); len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			writeProblem(w, http.StatusMethodNotAllowed, "this path has no such method")
			return
		}
		writeProblem(w, http.StatusNotFound, "there is nothing at this path")
	})
	return headers(a.repeat(mux))
}

// methods are those that an operation at the path of a request has.
func methods(mux *http.ServeMux, r *http.Request) (allowed []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != Base+"/" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// headers are on every response: an answer is for the one who asked.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func humaConfig() huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	aliases(registry)
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "SMS dispatcher", Version: "1",
				Description: "State and control of the SMS dispatcher. No response holds a phone " +
					"number or the text of a message.",
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {
						Type: "http", Scheme: "bearer",
						Description: "A token of the file of tokens, or of the OIDC issuer.",
					},
				},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		OpenAPIPath:                  Base + "/openapi",
		Formats:                      huma.DefaultFormats,
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{withoutValues},
	}
	return cfg
}

// schemaName puts the package before the name of a type that another package could have too.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	path := t.PkgPath()
	at := strings.LastIndexByte(path, '/')
	if own := path[at+1:]; own != "api" && own != "v2" && own != "" &&
		!strings.Contains(path[:max(at, 0)], ".") {
		return strings.ToUpper(own[:1]) + own[1:] + name
	}
	return name
}

// withoutValues takes what was sent out of the answer to a request that is not valid: it may be a
// number.
func withoutValues(_ huma.Context, _ string, v any) (any, error) {
	if problem, ok := v.(*huma.ErrorModel); ok {
		for _, detail := range problem.Errors {
			detail.Value = nil
		}
	}
	return v, nil
}
