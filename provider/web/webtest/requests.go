package webtest

import (
	"maps"
	"os"
	"slices"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Requests are submissions as they look on the wire, each in a file of its own. C is the adapter's configuration.
type Requests[C any] struct {
	// Files names the files, with a star for the name of the case.
	Files string
	// Config and Submission are what is usual.
	Config     C
	Submission provider.Submission
	// Compose writes a submission as a channel of that configuration does.
	Compose func(cfg C, s *provider.Submission) (*web.Request, error)
	// Cases are all files, each with what is not as usual.
	Cases map[string]Unusual[C]
}

// Unusual changes the configuration, the submission, both or nothing.
type Unusual[C any] struct {
	Config     func(*C)
	Submission func(*provider.Submission)
}

// Run compares all requests with their files. With UPDATE_GOLDEN set in the environment it writes them.
func (r Requests[C]) Run(t *testing.T) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") == "" {
		same(t, "the files are not those of the cases", starred(t, r.Files), slices.Sorted(maps.Keys(r.Cases)))
	}
	for name, c := range r.Cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, s := r.Config, r.Submission
			if c.Config != nil {
				c.Config(&cfg)
			}
			if c.Submission != nil {
				c.Submission(&s)
			}
			request, err := r.Compose(cfg, &s)
			if err != nil {
				t.Fatal(err)
			}
			CheckGolden(t, at(r.Files, name), request)
		})
	}
}
