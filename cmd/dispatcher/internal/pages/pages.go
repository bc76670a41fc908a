// Package pages is the console for operators and finance, on the admin address. Pages are rendered
// on the server; a small script updates the changing parts of a page and previews changes. Package
// access says who may see and do what. Changes go through package control, as those of the commands
// and the API do.
//
// No page shows a phone number or a text.
package pages

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Config is what the Server needs.
type Config struct {
	Gate   *access.Gate
	Ledger *ledger.Ledger
	// Keys are the keys of the draws. The explanation of a message needs them to show second draws,
	// and a search by number to hash it.
	Keys []selector.Key
	// Secret encrypts sessions. Instances with the same secret accept each other's.
	Secret []byte
	// Once signs one browser in without a token; nil for none.
	Once *Once
	// DeadAfter is how long an instance is silent before it counts as gone.
	DeadAfter time.Duration
	Log       zerolog.Logger
	// Publish writes replayed dead records and test messages to their topics.
	Publish      control.Publish
	Region       numbers.Region // of numbers without a country code
	AllowUnknown bool           // envelopes may have unknown fields
	// ReportCSV writes the rows of a report, as "dispatcher report" does.
	ReportCSV func(io.Writer, *report.Range) error
}

// Server serves the pages.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	origin   *http.CrossOriginProtection
	sessions *sealer
	signIns  *sealer
	pages    templates
	facts    facts

	cancelPage, mostCancelled int // the constants of that name; tests set others

	closing chan struct{} // closed by Close: streams end
	once    sync.Once
}

//go:embed assets
var assets embed.FS

// New makes the pages.
func New(cfg Config) (*Server, error) {
	if len(cfg.Secret) == 0 {
		return nil, errors.New("the sessions of the console need a secret")
	}
	s := &Server{
		cfg: cfg, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(),
		closing: make(chan struct{}), cancelPage: cancelPage, mostCancelled: mostCancelled,
	}
	var err error
	if s.sessions, err = newSealer(cfg.Secret, sessions); err != nil {
		return nil, err
	}
	if s.signIns, err = newSealer(cfg.Secret, signIns); err != nil {
		return nil, err
	}
	s.facts.server = s
	if s.pages, err = parsed(); err != nil {
		return nil, err
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, err
	}
	s.mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	s.mux.HandleFunc("GET /login", s.loginForm)
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("GET "+issuerPath, s.toIssuer)
	s.mux.HandleFunc("GET "+callbackPath, s.fromIssuer)
	s.mux.HandleFunc("POST /logout", s.logout)
	for _, e := range s.endpoints() {
		s.mux.Handle(e.pattern, s.handle(e.action, e.serve))
	}
	return s, nil
}

// ServeHTTP serves a page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(http.MaxBytesHandler(s.mux, largestEdit)).ServeHTTP(w, r)
}

// Close ends the streams of pages that are open, so that the HTTP server can stop.
func (s *Server) Close() { s.once.Do(func() { close(s.closing) }) }

// endpoint is a page or a form, with the action that the user's role must allow.
type endpoint struct {
	pattern string
	action  access.Action
	serve   func(w http.ResponseWriter, r *request) error
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"GET /{$}", access.View, s.showLive("overview")},
		{"GET /live/{page}", access.View, s.live},

		{"GET /routes", access.View, s.showLive("routes")},
		{"GET /routes/{route}", access.View, s.route},
		{"POST /routes/{route}/preview", access.Operate, s.previewWeights},
		{"POST /routes/{route}/weights", access.Operate, s.setWeights},
		{"POST /routes/{route}/ramp", access.Operate, s.startRamp},
		{"POST /routes/{route}/steer", access.Operate, s.steerRamp},

		{"GET /routing", access.View, s.versions},
		{"GET " + editPath, access.Operate, s.editForm},
		{"POST " + editPath, access.Operate, s.edit},
		{"GET /routing/{version}", access.View, s.version},
		{"POST /routing/{version}/rollback", access.Operate, s.rollback},

		{"GET /channels", access.View, s.showLive("channels")},
		{"GET /channels/{channel}", access.View, s.channel},
		{"POST /channels/{channel}/state", access.Operate, s.setState},
		{"POST /channels/{channel}/test", access.Operate, s.testChannel},

		{"POST /limits/restart", access.Operate, s.restartLimit},
		{"POST /limits/max", access.Operate, s.setMax},
		{"POST /limits/top-up", access.Operate, s.topUp},

		{"GET /pauses", access.View, s.pauses},
		{"POST /pauses", access.Operate, s.pause},
		{"POST /pauses/cancel", access.Operate, s.cancelWaiting},

		{"GET /messages", access.View, s.findMessage},
		{"POST /messages", access.View, s.findByNumber},
		{"GET /messages/{id}", access.View, s.message},
		{"POST /messages/{id}/cancel", access.Operate, s.cancel},

		{"GET " + optOutsPath, access.View, s.optOuts},
		{"POST " + optOutsPath, access.Operate, s.changeOptOut},
		{"POST " + optOutsPath + "/lookup", access.View, s.lookUpOptOut},

		{"GET /ambiguous", access.View, s.ambiguous},
		{"POST /ambiguous", access.Operate, s.settle},
		{"POST /dead", access.Operate, s.replayDead},

		{"GET /reports", access.Report, s.reports},
		{"GET " + csvPath, access.Report, s.reportCSV},
		{"GET /audit", access.Audit, s.audit},
		{"GET /instances", access.View, s.showLive("instances")},
	}
}
