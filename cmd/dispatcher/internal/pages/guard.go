package pages

import (
	"crypto/subtle"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

// policy lets a page load only what this server serves: no inline scripts or styles, no other host,
// no frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the security headers of every answer. The referrer policy cannot be no-referrer: with
// that, browsers send no Origin, and forms are checked by it.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// request is a request of a user who is signed in.
type request struct {
	*http.Request
	who     access.Principal
	session *session
}

// may reports whether the user's role allows an action.
func (r *request) may(a access.Action) bool { return r.who.Role.May(a) }

// handle serves a page to users whose role allows the action. A request that changes something must
// come from a form of this session.
func (s *Server) handle(
	action access.Action, serve func(w http.ResponseWriter, r *request) error,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := s.signedIn(r)
		switch {
		case errors.Is(err, access.ErrUnavailable):
			s.cfg.Log.Error().Err(err).Msg(uncheckedInLog)
			s.fail(w, &request{Request: r}, http.StatusServiceUnavailable, unchecked)
			return
		case err != nil:
			s.askToSignIn(w, r)
			return
		}
		if !in.may(action) {
			s.fail(w, in, http.StatusForbidden, "Your role, "+in.who.Role.String()+
				", does not allow that. Sign in with a token of a role that does, or ask an admin.")
			return
		}
		if wait := s.cfg.Gate.Wait(&in.who); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			s.fail(w, in, http.StatusTooManyRequests, "Too many requests came with your token: wait "+
				"some seconds, then try again.")
			return
		}
		if r.Method == http.MethodPost {
			if tooLarge(w, r) {
				s.fail(w, in, http.StatusRequestEntityTooLarge, "This form is too large: send less text.")
				return
			}
			if !s.isOurs(in) {
				s.fail(w, in, http.StatusForbidden, "This form was not sent from a page of "+
					"this console, or the page is from another session. Reload the page and try "+
					"again.")
				return
			}
		}
		if err := serve(w, in); err != nil {
			s.failed(w, in, err)
		}
	})
}

// largestForm is more than any form needs, except the form of the routing document. That has up to
// 1 MiB, which takes up to three times as much in a form.
const (
	largestForm = 64 << 10
	largestEdit = 4 << 20
)

// tooLarge parses the form of a request, and reports whether it is larger than allowed.
func tooLarge(w http.ResponseWriter, r *http.Request) bool {
	most := int64(largestForm)
	if r.URL.Path == editPath {
		most = largestEdit
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	return is[*http.MaxBytesError](r.ParseForm())
}

// isOurs reports whether a form comes from a page of this session: the browser says that the page
// has this origin, and the form has the session's secret.
func (s *Server) isOurs(r *request) bool {
	if s.origin.Check(r.Request) != nil {
		return false
	}
	sent := r.PostFormValue("csrf")
	return subtle.ConstantTimeCompare([]byte(sent), []byte(r.session.CSRF)) == 1
}

// sessionOf is the session of a request; nil when there is none. Its token may be invalid by now.
func (s *Server) sessionOf(r *http.Request) *session {
	var of session
	if !s.sessions.open(sealedSession(r), time.Now(), &of) {
		return nil
	}
	return &of
}

// signedIn checks the session of a request and returns its user.
func (s *Server) signedIn(r *http.Request) (*request, error) {
	of := s.sessionOf(r)
	if of == nil {
		return nil, access.ErrUnauthenticated
	}
	who, err := s.cfg.Gate.Token(r.Context(), of.Token)
	if err != nil {
		return nil, err
	}
	return &request{r, who, of}, nil
}

// askToSignIn redirects to the login form, or to the issuer if the session began there, and after
// that back to the page. For a POST it shows the login form, which leads back to the page with the
// form, because the URL of the POST is not a page.
func (s *Server) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == "text/event-stream" {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet {
		s.showLoginTo(w, r, http.StatusUnauthorized, refererPath(r), "Your session has ended, and "+
			"nothing was changed. Sign in and send the form again.")
		return
	}
	to := "/login"
	if of := s.sessionOf(r); of != nil && of.AtIssuer && s.cfg.Gate.SignsInAt() != "" {
		to = issuerPath
	}
	if r.URL.RequestURI() != "/" {
		to += "?" + url.Values{"to": {r.URL.RequestURI()}}.Encode()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// refererPath is the path of the console page that a request comes from; "/" for any other.
func refererPath(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return from.RequestURI()
}
