package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"dispatcher/provider/settings"
)

var methods = map[string]string{"": http.MethodPost, "GET": http.MethodGet, "POST": http.MethodPost, "PUT": http.MethodPut}

// readRequest reads how a submission is written.
func (c *Config) readRequest(p parser, r *settings.Reader) {
	q := request{
		method:  settings.Choose(r, "method", methods),
		headers: readFields(r, "headers", inHeaders), query: readFields(r, "query", anywhere), form: readFields(r, "form", anywhere),
	}
	if q.method == "" {
		q.method = http.MethodPost
	}
	var err error
	if q.path, err = parseTemplate(r.Text("path"), inPath); err == nil {
		err = checkPath(r.Text("path"))
	}
	if err != nil {
		r.Fail("path", err)
	}
	q.json, q.xml = readJSON(r), readXML(r)
	p.section(r, "basic", false, func(p parser, r *settings.Reader) {
		secret, err := p.secret(r.Text("password_file"))
		if err != nil {
			r.Fail("password_file", err)
		}
		q.authorization = basic(r.Text("user"), secret)
	})
	q.check(r)
	c.checkSecrets(r, &q)
	c.request = q
}

func checkPath(path string) error {
	switch {
	case path != "" && !strings.HasPrefix(path, "/"):
		return errors.New("does not begin with a slash")
	case strings.ContainsAny(path, "?#"):
		return errors.New("has a query; write that under query")
	case strings.Contains(path, "/../"), strings.HasSuffix(path, "/.."):
		return errors.New("leads upwards")
	}
	return nil
}

func readJSON(r *settings.Reader) node {
	value, ok := r.Take("json")
	if !ok {
		return nil
	}
	tree, err := parseTree(value)
	if err != nil {
		r.Fail("json", err)
	}
	return tree
}

func readXML(r *settings.Reader) *template {
	body := r.Text("xml")
	if body == "" {
		return nil
	}
	t, err := parseXML(body)
	if err != nil {
		r.Fail("xml", err)
	}
	return &t
}

func readFields(r *settings.Reader, key string, allowed []string) fields {
	values := words(r, key)
	if values == nil {
		return nil
	}
	list := make(fields, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t, err := parseTemplate(values[name], allowed)
		if err == nil {
			err = hidden(name, text{t})
		}
		if err != nil {
			r.Fail(key, fmt.Errorf("%s: %w", name, err))
		}
		list = append(list, field{name, t})
	}
	return list
}

// secretive are names of fields that hold a secret.
var secretive = regexp.MustCompile(`(?i)^(pass|passwd|password|pwd|secret|token|auth[-_]?token|access[-_]?(key|token)|(x[-_])?api[-_]?key|authorization)$`)

// hidden refuses a secret that stands in the document itself.
func hidden(name string, value node) error {
	if secretive.MatchString(name) && !value.has(secretName, callbackSecretName) {
		return errors.New("a secret does not belong into the routing document; put it into a file, name that under secrets and write {secret:NAME} here")
	}
	return nil
}

// own are header fields that are not for the document to set.
var own = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Te", "Trailer", "Upgrade"}

var fieldName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$") // RFC 9110 section 5.6.2

func (q *request) check(r *settings.Reader) {
	for _, h := range q.headers {
		if !fieldName.MatchString(h.name) || slices.Contains(own, http.CanonicalHeaderKey(h.name)) {
			r.Failf("headers", "%q is no name of a field that can be set", h.name)
		}
	}
	bodies := 0
	for _, has := range []bool{q.form != nil, q.json != nil, q.xml != nil} {
		if has {
			bodies++
		}
	}
	switch {
	case bodies > 1:
		r.Failf("form", "only one of form, json and xml can be the body")
	case bodies > 0 && q.method == http.MethodGet:
		r.Failf("method", "a GET has no body; use query, or another method")
	}
	for _, name := range []string{"text", "to"} {
		if !q.has(name, name+"_hex", name+"_digits") {
			r.Failf("query", "{%s} stands nowhere in the request", name)
		}
	}
}

// checkSecrets refuses names that secrets does not have.
func (c *Config) checkSecrets(r *settings.Reader, q *request) {
	for name := range q.secretsIn() {
		if _, known := c.secrets[name]; !known {
			r.Failf("headers", "{secret:%s} is none of secrets", name)
		}
	}
}
