package pages

import (
	"bufio"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
)

// TestAnOpenStreamEndsWithItsToken: when the token is taken out of the file, or gets a role that
// may not see the page, the next event says that the session has ended, and the stream ends.
func TestAnOpenStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tokens string) string{
		"the token is gone": func(string) string { return "" },
		"its role may not see the page": func(tokens string) string {
			return strings.ReplaceAll(tokens, " viewer ", " finance ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			b := c.client(t, "viewer")
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				c.url+"/live/overview", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "text/event-stream")
			response, err := b.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }() // it is read to its end
			events := make(chan string, 100)
			go func() {
				defer close(events)
				for lines := bufio.NewScanner(response.Body); lines.Scan(); {
					if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
						events <- event
					}
				}
			}()
			if event := <-events; event != "part" {
				t.Fatalf("the first event is %q", event)
			}
			tokens, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			changed := change(string(tokens))
			if changed == string(tokens) {
				t.Fatalf("no token has changed: %s", tokens)
			}
			if err := os.WriteFile(c.file, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			var last string
			for timeout := time.After(5 * liveEvery); ; {
				select {
				case event, open := <-events:
					if open {
						last = event
						continue
					}
					if last != "signout" {
						t.Errorf("the last event is %q", last)
					}
				case <-timeout:
					t.Error("the stream is still open")
				}
				return
			}
		})
	}
}

// TestAPageThatIsNotThereIsNoFault: a link that was changed by hand, also to a time that PostgreSQL
// does not know.
func TestAPageThatIsNotThereIsNoFault(t *testing.T) {
	t.Parallel()
	b := newConsole(t).client(t, "admin")
	for _, path := range []string{
		"/ambiguous?after=x", "/ambiguous?after=" + control.Cursor(1<<62, 1, 1),
		"/ambiguous?after=" + control.Cursor(1, 1, 1<<40), "/ambiguous?below=x", "/audit?cursor=x",
	} {
		if got := b.get(path); got.StatusCode != http.StatusNotFound ||
			!strings.Contains(got.body, "begin at its first one") {
			t.Errorf("%s: %d: %s", path, got.StatusCode, got.body)
		}
	}
}
