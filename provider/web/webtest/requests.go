package webtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Requests are submissions with their golden files. C is the adapter's configuration.
type Requests[C any] struct {
	// Files names the files, with a star for the name of the case.
	Files string
	// Config and Submission are the defaults of the cases.
	Config     C
	Submission provider.Submission
	// Compose writes a submission as a channel with that configuration does.
	Compose func(cfg C, s *provider.Submission) (*web.Request, error)
	// Cases are all files, each with its differences from the defaults.
	Cases map[string]Unusual[C]
}

// Unusual changes the configuration, the submission, both or neither.
type Unusual[C any] struct {
	Config     func(*C)
	Submission func(*provider.Submission)
}

// Run compares all requests with their files. With UPDATE_GOLDEN set in the environment it writes
// them.
func (r Requests[C]) Run(t *testing.T) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") == "" {
		same(t, "the files are not those of the cases", starred(t, r.Files),
			slices.Sorted(maps.Keys(r.Cases)))
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

// ReadAnswer reads a recorded HTTP answer: status line, header, empty line, and the body up to the
// end of the file.
func ReadAnswer(t testing.TB, file string) *web.Answer {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(content)), nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	defer r.Body.Close() //nolint:errcheck // it reads from memory
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &web.Answer{Status: r.StatusCode, Header: r.Header, Body: body, At: time.Now()}
}

// written is a request in the format of golden files: method and URL, header fields in the order of
// their names, an empty line, the body.
func written(r *web.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", r.Body)
	return b.String()
}

// CheckGolden compares a request with a file. With UPDATE_GOLDEN set in the environment it writes
// the file.
func CheckGolden(t testing.TB, file string, r *web.Request) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(written(r)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	if got := written(r); got != string(want) {
		t.Errorf("%s is\n%s\nbut the request is\n%s", file, want, got)
	}
}
