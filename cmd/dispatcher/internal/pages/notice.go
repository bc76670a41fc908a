package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// done redirects to a page that shows a notice of what was done. The notice is in the URL, with a
// code of the session, so that a link of somebody else cannot make the console show any text.
func (s *Server) done(w http.ResponseWriter, r *request, to, notice string) error {
	query := url.Values{"done": {notice}, "by": {noticeCode(r, notice)}}
	http.Redirect(w, r.Request, to+"?"+query.Encode(), http.StatusSeeOther)
	return nil
}

func noticeCode(r *request, notice string) string {
	mac := hmac.New(sha256.New, []byte(r.session.CSRF))
	mac.Write([]byte(notice))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
}

func (s *Server) isNotice(r *request, notice string) bool {
	return hmac.Equal([]byte(r.URL.Query().Get("by")), []byte(noticeCode(r, notice)))
}
