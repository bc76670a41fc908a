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
	// signInLife bounds the time between redirect to the issuer and return.
	signInLife = 10 * time.Minute
	// longestPath keeps the cookie of a sign-in small.
	longestPath = 1 << 10
)

// signIn is a sign-in at the issuer that has begun. It is sealed in a cookie, which binds the
// issuer's answer to this browser: nobody can make another browser use their own answer.
type signIn struct {
	access.SignIn
	To      string    `json:"t"` // the page to show after it
	Expires time.Time `json:"x"`
}

func (i *signIn) end() time.Time { return i.Expires }

// toIssuer redirects the browser to the issuer.
func (s *Server) toIssuer(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Gate.SignsInAt() == "" {
		s.showLogin(w, r, http.StatusNotFound, "Nobody signs in at an issuer here: "+
			"sign in with a token.")
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

// fromIssuer handles the return from the issuer, and starts a session with the issuer's token.
func (s *Server) fromIssuer(w http.ResponseWriter, r *http.Request) {
	state := r.URL.Query().Get("state")
	var in signIn
	c, err := r.Cookie(signInCookie(r, state, "").Name)
	if s.cfg.Gate.SignsInAt() == "" || err != nil || !s.signIns.open(c.Value, time.Now(), &in) {
		s.showLogin(w, r, http.StatusForbidden, "This browser has not begun to sign in, or began "+
			"too long ago. Sign in again.")
		return
	}
	http.SetCookie(w, signInCookie(r, state, "")) // deletes it: an answer is used once
	token, err := s.cfg.Gate.Exchange(r.Context(), r.URL.Query(), &in.SignIn)
	if err != nil {
		s.notSignedIn(w, r, in.To, err)
		return
	}
	to, ok := s.begin(w, r, &session{Token: token, AtIssuer: true}, in.To)
	if !ok {
		return
	}
	// Not a redirect: the browser would count the redirected request as cross-site, and not send the
	// session's cookie, which is SameSite=Strict.
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

// signInCookie holds one sign-in; its name has the state, so that several tabs can sign in at the
// same time. It is SameSite=Lax, because the browser returns from another site.
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

// origin is the URL of this console as the browser sees it. Except on loopback that is https: the
// cookies of the console are Secure.
func origin(r *http.Request) string {
	u := url.URL{Scheme: "https", Host: r.Host}
	if isLoopback(r) && !isEncrypted(r) {
		u.Scheme = "http"
	}
	return u.String()
}
