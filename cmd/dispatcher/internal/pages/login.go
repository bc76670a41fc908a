package pages

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

// Once is a code that lets one browser in, once, as whoever has the token. A process with its own
// servers prints it in an address.
type Once struct {
	Code, Token string

	mu   sync.Mutex
	used bool
}

// take returns the token for the code, the first time.
func (o *Once) take(code string) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	want, got := sha256.Sum256([]byte(o.Code)), sha256.Sum256([]byte(code))
	if o.used || o.Code == "" || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return ""
	}
	o.used = true
	return o.Token
}

// loginPage is what the form shows.
type loginPage struct {
	To, Error string
	// Plain warns that the browser would not keep the session without TLS.
	Plain bool
}

func (s *Server) loginForm(w http.ResponseWriter, r *http.Request) {
	if code := r.URL.Query().Get("code"); code != "" {
		token := s.cfg.Once.take(code)
		if token == "" {
			s.showLogin(w, r, http.StatusForbidden, "That address has been used already, or is of "+
				"another process. Sign in with a token.")
			return
		}
		s.begin(w, r, token)
		return
	}
	s.showLogin(w, r, http.StatusOK, "")
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, problem string) {
	s.render(w, &request{Request: r}, status, "login", "Sign in", &loginPage{
		To: localPath(r.FormValue("to")), Error: problem, Plain: !isLoopback(r) && !isEncrypted(r),
	})
}

// login takes a token. Its form has no session whose secret it could send, so the origin counts.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	if s.origin.Check(r) != nil {
		s.showLogin(w, r, http.StatusForbidden, "This form was not sent from a page of this console.")
		return
	}
	s.begin(w, r, strings.TrimSpace(r.PostFormValue("token")))
}

// begin starts the session of a token that is valid, and goes on to where the user wanted to go.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, token string) {
	who, err := s.cfg.Gate.Token(r.Context(), token)
	switch {
	case errors.Is(err, access.ErrUnavailable):
		s.showLogin(w, r, http.StatusServiceUnavailable, "Tokens cannot be checked now. Try again "+
			"in a few seconds.")
		return
	case errors.Is(err, access.ErrNoRole):
		s.showLogin(w, r, http.StatusForbidden, "The token is valid and gives no role here.")
		return
	case err != nil:
		s.showLogin(w, r, http.StatusForbidden, "Nobody has this token.")
		return
	}
	sealed, err := s.sealer.seal(newSession(token, time.Now()))
	if err != nil {
		s.showLogin(w, r, http.StatusBadRequest, "The token is too long for a session: ask the "+
			"issuer for one with fewer claims.")
		return
	}
	http.SetCookie(w, cookie(r, sealed))
	to := localPath(r.FormValue("to"))
	if to == "/" {
		to = home(who.Role)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// home is the first page that a role may see.
func home(role access.Role) string {
	if role.May(access.View) {
		return "/"
	}
	return "/reports"
}

// logout takes the session from the browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if s.origin.Check(r) != nil {
		http.Error(w, "not from a page of this console", http.StatusForbidden)
		return
	}
	http.SetCookie(w, cookie(r, ""))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath keeps a redirect on this host: "//host" and "/\host" lead elsewhere.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || len(to) > 1 && (to[1] == '/' || to[1] == '\\') ||
		strings.ContainsAny(to, "\r\n\t") {
		return "/"
	}
	return to
}
