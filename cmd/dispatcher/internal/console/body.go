package console

import (
	"net/http"
	"time"
)

// bodyTimeout bounds how long the body of a request takes to arrive.
const bodyTimeout = 10 * time.Second

// timely ends the reading of bodies that arrive too slowly, also of those that no handler reads.
// The ReadTimeout of the server would end streams as well. Once a body has been read to its end,
// net/http takes the deadline off, so the answer may take longer.
func timely(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			// The writer of this server supports deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
		}
		next.ServeHTTP(w, r)
	})
}
