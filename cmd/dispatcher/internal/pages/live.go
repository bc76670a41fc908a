package pages

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// liveEvery is how often a page that is open is looked at again.
const liveEvery = 2 * time.Second

// liveParts say how the changing part of a page is made again.
func (s *Server) liveParts() map[string]func(r *request) (any, error) {
	return map[string]func(r *request) (any, error){
		"overview":  s.overviewNow,
		"channels":  s.channelsNow,
		"routes":    s.routesNow,
		"instances": s.instancesNow,
	}
}

// live sends the changing part of a page again whenever it is another one, as server-sent events.
// The session is checked each time: a token that is not valid any more ends the stream.
func (s *Server) live(w http.ResponseWriter, r *request) error {
	page := r.PathValue("page")
	now, ok := s.liveParts()[page]
	if !ok {
		return notFound{"There is no such stream."}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies are to pass each event on
	out := http.NewResponseController(w)
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	var last []byte
	for {
		if _, err := s.signedIn(r.Request); err != nil {
			return send(w, out, "signout", []byte("end"))
		}
		value, err := now(r)
		if err != nil {
			if r.Context().Err() == nil {
				s.cfg.Log.Debug().Err(err).Msg("a page of the console is not up to date")
			}
			err = send(w, out, "stale", []byte("the database does not answer"))
		} else {
			var part []byte
			if part, err = s.part(r, page, "live", value); err == nil && !bytes.Equal(part, last) {
				last = part
				err = send(w, out, "part", part)
			} else if err == nil {
				err = send(w, out, "same", []byte("-"))
			}
		}
		if err != nil {
			return nil // the browser has gone: there is nobody to tell
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return nil
		case <-s.closing:
			return nil
		}
	}
}

// send writes one event. A line of text is a line of data.
func send(w http.ResponseWriter, out *http.ResponseController, event string, text []byte) error {
	fmt.Fprintf(w, "event: %s\n", event)
	for line := range bytes.Lines(text) {
		fmt.Fprintf(w, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	if _, err := w.Write([]byte("\n")); err != nil {
		return err
	}
	return out.Flush()
}
