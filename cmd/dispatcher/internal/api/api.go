// Package api is the HTTP API on the admin address, /api/v1, described by OpenAPI. It does the same
// as the commands, and checks roles. Reads call packages status and lookup, changes call package
// control, which have all rules. No response holds a phone number or a text.
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
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Base is the path of the API.
const Base = "/api/v1"

// Config is what the API needs.
type Config struct {
	Gate   *access.Gate
	Ledger *ledger.Ledger
	// Keys are the keys of the draws. A number is looked up by its hash under each of them.
	Keys []selector.Key
	// Region is the country of numbers without a country code; the empty region refuses them.
	Region numbers.Region
	// DeadAfter is how long an instance is silent before it counts as gone.
	DeadAfter time.Duration
	Log       zerolog.Logger
	// LiveEvery is how often the stream of the status reads it; 0 is a second.
	LiveEvery time.Duration
	// Intake publishes messages of senders; nil leaves that operation out. IntakeMetrics count them.
	Intake        Intake
	IntakeMetrics IntakeMetrics
	// Publish writes replayed dead records and test messages to their topics.
	Publish control.Publish
	// AllowUnknown lets envelopes have unknown fields.
	AllowUnknown bool
}

// API serves the requests.
type API struct {
	cfg  Config
	huma huma.API
	// memory bounds what bodies take, those of senders apart.
	memory, memoryOfSenders *access.Shares
	// topics caches the topic of each lane, for messages of senders.
	topics laneTopics

	closing chan struct{} // closed by Close: streams end
	once    sync.Once
}

// New makes the API.
func New(cfg Config) *API {
	a := &API{
		cfg: cfg, closing: make(chan struct{}),
		memory:          access.NewShares(memoryOfAll, memoryOfEach),
		memoryOfSenders: access.NewShares(memoryOfAll, memoryOfEach),
	}
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
	a.huma.UseMiddleware(a.guard, a.receive, a.repeat, a.noEmptyValues)
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
	return headers(mux)
}

// methods returns the methods that have an operation at the path of a request.
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

// headers sets the headers of every response. Nothing may be cached, because it depends on the role
// of the caller.
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
	return huma.Config{
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
}

// schemaName puts the package before the name of a type, so that types of two packages with the
// same name get different schemas.
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

// withoutValues removes the sent values from the answer to an invalid request: one may be a phone
// number. It leaves out the errors beyond mostProblems.
func withoutValues(_ huma.Context, _ string, v any) (any, error) {
	if problem, ok := v.(*huma.ErrorModel); ok {
		problem.Errors = problem.Errors[:min(len(problem.Errors), mostProblems)]
		for _, detail := range problem.Errors {
			detail.Value = nil
		}
	}
	return v, nil
}
