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

	"dispatcher/provider/web"
)

// ReadAnswer reads an answer as it stands on the wire: a status line, header fields, an empty line and the
// body up to the end of the file.
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

// written is a request as a golden file has it: method and URL, header fields in the order of their names, an empty
// line, the body.
func written(r *web.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", r.Body)
	return b.String()
}

// CheckGolden compares a request with a file. With UPDATE_GOLDEN set in the environment it writes the file.
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
