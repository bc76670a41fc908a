package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

// Once is a code that signs one browser in, once, with a token. A process with embedded servers
// prints a URL with the code.
type Once struct {
	Code, Token string

	mu   sync.Mutex
	used bool
}

// take returns the token for the code, once; empty for another code or the second time.
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
	Issuer    string // the host that people sign in at; empty without one
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
		s.beginWith(w, r, token)
		return
	}
	s.showLogin(w, r, http.StatusOK, "")
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, problem string) {
	s.showLoginTo(w, r, status, r.FormValue("to"), problem)
}

// showLoginTo shows the login form, which leads on to a page.
func (s *Server) showLoginTo(
	w http.ResponseWriter, r *http.Request, status int, to, problem string,
) {
	s.render(w, &request{Request: r}, status, "login", "Sign in", &loginPage{
		To: localPath(to), Error: problem, Plain: !isLoopback(r) && !isEncrypted(r),
		Issuer: s.cfg.Gate.SignsInAt(),
	})
}

// login signs in with a token. There is no session secret to check yet, so it checks the origin
// alone.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	if s.origin.Check(r) != nil {
		s.showLogin(w, r, http.StatusForbidden, "This form was not sent from a page of this console. "+
			"Send it from here.")
		return
	}
	s.beginWith(w, r, strings.TrimSpace(r.PostFormValue("token")))
}

// beginWith starts a session with a token, and redirects to the page that the user wanted.
func (s *Server) beginWith(w http.ResponseWriter, r *http.Request, token string) {
	if to, ok := s.begin(w, r, &session{Token: token}, r.FormValue("to")); ok {
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// unchecked is what a user reads when tokens cannot be checked; the log says why.
const (
	unchecked = "Tokens cannot be checked now. Try again in a few seconds; if it stays so, the log " +
		"says what is wrong with the issuer or the file of tokens."
	uncheckedInLog = "tokens cannot be checked"
)

// begin starts a session if its token is valid, and returns the page to go on with. When it returns
// false, it has answered the request.
func (s *Server) begin(
	w http.ResponseWriter, r *http.Request, of *session, to string,
) (string, bool) {
	who, err := s.cfg.Gate.Token(r.Context(), of.Token)
	switch {
	case errors.Is(err, access.ErrUnavailable):
		s.cfg.Log.Error().Err(err).Msg(uncheckedInLog)
		s.showLogin(w, r, http.StatusServiceUnavailable, unchecked)
		return "", false
	case errors.Is(err, access.ErrNoRole):
		s.showLogin(w, r, http.StatusForbidden, "The token is valid and gives no role here: "+
			"ask for one of DISPATCHER_OIDC_ROLE_MAP or of the file of tokens.")
		return "", false
	case err != nil:
		s.showLogin(w, r, http.StatusForbidden, "Nobody has this token: it was copied in part, has "+
			"expired, or was removed.")
		return "", false
	}
	of.CSRF, of.Expires = rand.Text(), time.Now().Add(sessionLife)
	sealed, err := s.sessions.seal(of)
	if err != nil {
		s.showLogin(w, r, http.StatusBadRequest, "The token is too long for a session: ask the "+
			"issuer for one with fewer claims.")
		return "", false
	}
	setSession(w, r, sealed)
	if to = localPath(to); to == "/" {
		to = home(who.Role)
	}
	return to, true
}

// home is the start page of a role.
func home(role access.Role) string {
	if role.May(access.View) {
		return "/"
	}
	return "/reports"
}

// logout deletes the session's cookie.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if s.origin.Check(r) != nil {
		http.Error(w, "not from a page of this console", http.StatusForbidden)
		return
	}
	setSession(w, r, "")
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath returns a path for a redirect, or "/" if it could leave this host, as "//host" does.
// Browsers read a backslash as a slash, and http.Redirect turns "/./\host" into "/\host".
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
