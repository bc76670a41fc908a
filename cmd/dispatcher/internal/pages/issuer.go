package pages

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

const (
	issuerPath   = "/login/issuer"
	callbackPath = "/login/callback"
	// signInLife bounds the time that somebody takes at the issuer.
	signInLife = 10 * time.Minute
	// longestPath keeps the cookie of a sign-in small.
	longestPath = 1 << 10
)

// signIn is a sign-in at the issuer that has begun. The cookie that holds it, sealed, binds the
// answer to the browser: nobody can make another one take theirs.
type signIn struct {
	access.SignIn
	To      string    `json:"t"` // the page to go on with
	Expires time.Time `json:"x"`
}

func (i *signIn) end() time.Time { return i.Expires }

// toIssuer leads the browser to the issuer.
func (s *Server) toIssuer(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Gate.SignsInAt() == "" {
		s.showLogin(w, r, http.StatusNotFound, "Nobody signs in at an issuer here.")
		return
	}
	in := &signIn{
		SignIn: access.NewSignIn(origin(r) + callbackPath),
		To:     r.FormValue("to"), Expires: time.Now().Add(signInLife), // begin checks To
	}
	if len(in.To) > longestPath {
		in.To = "/"
	}
	to, err := s.cfg.Gate.SignInURL(&in.SignIn)
	if err != nil {
		s.notSignedIn(w, r, in.To, err)
		return
	}
	sealed, err := s.signIns.seal(in)
	if err != nil {
		s.notSignedIn(w, r, in.To, err)
		return
	}
	http.SetCookie(w, signInCookie(r, in.State, sealed))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// fromIssuer takes the browser back, and starts the session of the token that the issuer gives.
func (s *Server) fromIssuer(w http.ResponseWriter, r *http.Request) {
	state := r.URL.Query().Get("state")
	var in signIn
	c, err := r.Cookie(signInCookie(r, state, "").Name)
	if s.cfg.Gate.SignsInAt() == "" || err != nil || !s.signIns.open(c.Value, time.Now(), &in) {
		s.showLogin(w, r, http.StatusForbidden, "This browser has not begun to sign in, or began "+
			"too long ago. Sign in again.")
		return
	}
	http.SetCookie(w, signInCookie(r, state, "")) // an answer is taken once
	token, err := s.cfg.Gate.Exchange(r.Context(), r.URL.Query(), &in.SignIn)
	if err != nil {
		s.notSignedIn(w, r, in.To, err)
		return
	}
	to, ok := s.begin(w, r, &session{Token: token, AtIssuer: true}, in.To)
	if !ok {
		return
	}
	// Not a redirect: the browser would still count the next request as one of the issuer's site,
	// and keep the cookie of the session, which is SameSite=Strict, to itself.
	s.render(w, &request{Request: r}, http.StatusOK, "signedin", "Signed in", to)
}

// notSignedIn says why a sign-in at the issuer has failed.
func (s *Server) notSignedIn(w http.ResponseWriter, r *http.Request, to string, err error) {
	s.cfg.Log.Warn().Err(err).Msg("a sign-in to the console at the issuer failed")
	status, why := http.StatusForbidden, ""
	switch {
	case errors.Is(err, access.ErrUnavailable):
		status = http.StatusServiceUnavailable
		why = "The issuer cannot be reached now. Try again in a few seconds."
	case errors.Is(err, access.ErrNoRole):
		why = "You are known at the issuer, and have no role here."
	case errors.Is(err, access.ErrRefused):
		why = sentence(err.Error())
	default:
		why = "The issuer gives tokens that are not valid here: they are not for " +
			"DISPATCHER_OIDC_AUDIENCE, or have no name."
	}
	s.showLoginTo(w, r, status, to, why)
}

// signInCookie holds one sign-in, so that several tabs may sign in at once. It is Lax, because the
// browser comes back with it from another site.
func signInCookie(r *http.Request, state, sealed string) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName(r) + "-" + state, Value: sealed, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: !isLoopback(r), MaxAge: int(signInLife.Seconds()),
	}
	if sealed == "" {
		c.MaxAge = -1
	}
	return c
}

// origin is where the browser sees this console. Away from loopback it has TLS: the cookies of the
// console would not come back without it.
func origin(r *http.Request) string {
	u := url.URL{Scheme: "https", Host: r.Host}
	if isLoopback(r) && !isEncrypted(r) {
		u.Scheme = "http"
	}
	return u.String()
}
