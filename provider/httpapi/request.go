package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// request is how a submission is written.
type request struct {
	method        string
	path          template
	headers       fields
	authorization string // of basic authentication; empty for none
	query         fields
	form          fields
	json          node      // nil for none
	xml           *template // nil for none
}

// Compose writes a submission.
func (a api) Compose(s *provider.Submission) (*web.Request, error) {
	r, v := &a.cfg.request, &values{cfg: a.cfg, s: s, now: time.Now()}
	path, ok := r.path.expand(v.get, url.PathEscape)
	if !ok {
		return nil, errors.New("the address needs a value that the message does not have")
	}
	if query := r.query.encode(v.get); query != "" {
		path += "?" + query
	}
	body, err := r.body(v)
	if err != nil {
		return nil, err
	}
	header, err := r.header(v)
	if err != nil {
		return nil, err
	}
	return &web.Request{Method: r.method, URL: path, Header: header, Body: body}, nil
}

func (r *request) body(v *values) ([]byte, error) {
	switch {
	case r.json != nil:
		tree, _, err := r.json.build(v.get)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(tree)
		if err != nil {
			return nil, errors.New("the message cannot be written as JSON")
		}
		return body, nil
	case r.xml != nil:
		body, _ := r.xml.expand(v.get, escapeXML) // an element whose value is missing is empty
		return []byte(body), nil
	}
	return []byte(r.form.encode(v.get)), nil
}

func (r *request) header(v *values) (http.Header, error) {
	header := http.Header{}
	switch {
	case r.json != nil:
		header.Set("Content-Type", "application/json")
	case r.xml != nil:
		header.Set("Content-Type", "application/xml; charset=utf-8")
	case r.form != nil:
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if r.authorization != "" {
		header.Set("Authorization", r.authorization)
	}
	for _, f := range r.headers {
		text, ok := f.value.expand(v.get, nil)
		if !ok {
			continue
		}
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, errors.New("a header field would hold something else than printable characters")
		}
		header.Set(f.name, text)
	}
	return header, nil
}

// has reports whether a placeholder of one of the names stands anywhere in the request.
func (r *request) has(names ...string) bool {
	return r.path.has(names...) || r.headers.has(names...) || r.query.has(names...) || r.form.has(names...) ||
		r.json != nil && r.json.has(names...) || r.xml != nil && r.xml.has(names...)
}

// secretsIn are the names of all secrets in the request.
func (r *request) secretsIn() map[string]bool {
	names := map[string]bool{}
	r.path.secrets(names)
	for _, list := range []fields{r.headers, r.query, r.form} {
		for _, f := range list {
			f.value.secrets(names)
		}
	}
	if r.json != nil {
		r.json.secrets(names)
	}
	if r.xml != nil {
		r.xml.secrets(names)
	}
	return names
}
