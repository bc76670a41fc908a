package pages

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/status"
)

// liveEvery is how often the changing part of an open page is rendered.
const liveEvery = 2 * time.Second

// livePage is a page with a part that is kept up to date.
type livePage struct {
	title string
	now   func(r *request) (any, error) // makes the data of the page
}

// livePages are these pages, by the names of their templates.
func (s *Server) livePages() map[string]livePage {
	return map[string]livePage{
		"overview":  {"Overview", s.overviewNow},
		"channels":  {"Channels", s.channelsNow},
		"routes":    {"Routes", s.routesNow},
		"instances": {"Instances", s.instancesNow},
	}
}

// showLive serves the whole page.
func (s *Server) showLive(name string) func(http.ResponseWriter, *request) error {
	page := s.livePages()[name]
	return func(w http.ResponseWriter, r *request) error {
		v, err := page.now(r)
		if err != nil {
			return err
		}
		return s.show(w, r, name, page.title, v)
	}
}

// instancesNow lists the running processes.
func (s *Server) instancesNow(r *request) (any, error) {
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return nil, err
	}
	return status.ReadInstances(r.Context(), s.cfg.Ledger, s.cfg.DeadAfter, current.Version)
}

// live sends the changing part of a page whenever it differs from the last one, as server-sent
// events. Otherwise it sends an event that says that the part is the same, or not up to date. The
// session is checked each time, so that a token that became invalid ends the stream.
func (s *Server) live(w http.ResponseWriter, r *request) error {
	name := r.PathValue("page")
	page, ok := s.livePages()[name]
	if !ok {
		return notFound{"There is no such stream."}
	}
	if !s.cfg.Gate.OpenStream(&r.who) {
		http.Error(w, "too many pages are open; close one of them", http.StatusTooManyRequests)
		return nil
	}
	defer s.cfg.Gate.CloseStream(&r.who)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // so that proxies pass each event on at once
	out := http.NewResponseController(w)
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	var last []byte
	for {
		if in, err := s.signedIn(r.Request); err != nil || !in.may(access.View) {
			return send(w, out, "signout", []byte("end"))
		}
		value, err := page.now(r)
		if err != nil {
			if r.Context().Err() == nil {
				s.cfg.Log.Debug().Err(err).Msg("a page of the console is not up to date")
			}
			err = send(w, out, "stale", []byte("the database does not answer"))
		} else {
			var part []byte
			if part, err = s.part(r, name, "live", value); err == nil && !bytes.Equal(part, last) {
				last = part
				err = send(w, out, "part", part)
			} else if err == nil {
				err = send(w, out, "same", []byte("-"))
			}
		}
		if err != nil {
			return nil // the browser has disconnected
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

// send writes one event, with a data field for each line of text.
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
