package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/settings"
)

var methods = map[string]string{
	"": http.MethodPost, "GET": http.MethodGet, "POST": http.MethodPost, "PUT": http.MethodPut,
}

// readRequest reads how a submission is written.
func (c *Config) readRequest(p parser, r *settings.Reader) {
	q := request{
		method:  settings.Choose(r, "method", methods),
		headers: readFields(r, "headers", inHeaders), query: readFields(r, "query", anywhere),
		form: readFields(r, "form", anywhere),
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
			err = refuseLiteralSecret(name, text{t})
		}
		if err != nil {
			r.Fail(key, fmt.Errorf("%s: %w", name, err))
		}
		list = append(list, field{name, t})
	}
	return list
}

// secretField are names of fields that hold a secret.
var secretField = regexp.MustCompile(
	`(?i)^(pass|passwd|password|pwd|secret|token|auth[-_]?token|access[-_]?(key|token)|` +
		`(x[-_])?api[-_]?key|authorization)$`)

// refuseLiteralSecret refuses a secret in the document itself.
func refuseLiteralSecret(name string, value node) error {
	if secretField.MatchString(name) && !value.has(secretName, callbackSecretName) {
		return errors.New(
			"a secret does not belong into the routing document; put it into a file, name that under " +
				"secrets and write {secret:NAME} here")
	}
	return nil
}

// own are header fields that the document may not set.
var own = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Te", "Trailer",
	"Upgrade",
}

var fieldName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$") // RFC 9110 section 5.6.2

func (r *request) check(in *settings.Reader) {
	for _, h := range r.headers {
		if !fieldName.MatchString(h.name) || slices.Contains(own, http.CanonicalHeaderKey(h.name)) {
			in.Failf("headers", "%q is not a name of a field that can be set", h.name)
		}
	}
	bodies := 0
	for _, has := range []bool{r.form != nil, r.json != nil, r.xml != nil} {
		if has {
			bodies++
		}
	}
	switch {
	case bodies > 1:
		in.Failf("form", "only one of form, json and xml can be the body")
	case bodies > 0 && r.method == http.MethodGet:
		in.Failf("method", "a GET has no body; use query, or another method")
	}
	for _, name := range []string{"text", "to"} {
		if !r.has(name, name+"_hex", name+"_digits") {
			in.Failf("query", "{%s} stands nowhere in the request", name)
		}
	}
}

// checkSecrets refuses names that are not under secrets.
func (c *Config) checkSecrets(r *settings.Reader, q *request) {
	for name := range q.secretsIn() {
		if _, known := c.secrets[name]; !known {
			r.Failf("headers", "{secret:%s} is none of secrets", name)
		}
	}
}

// readAnswer reads how an answer is read.
func (c *Config) readAnswer(p parser, r *settings.Reader) {
	c.answer = answer{
		id: readPlace(r, "id", inAnswers), code: readPlace(r, "code", inAnswers),
		retryAfter: readPlace(r, "retry_after", inAnswers),
	}
	value, _ := r.Take("outcomes")
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		r.Failf("outcomes", "is not a list of {status, code, outcome}")
		return
	}
	accepts := false
	for i, entry := range list {
		rule, err := p.rule(entry)
		if err != nil {
			r.Failf("outcomes", "%d: %w", i+1, err)
			continue
		}
		if rule.codes != nil && c.answer.code == nil {
			r.Failf("outcomes", "%d: names a code, but answer has no place for one", i+1)
		}
		accepts = accepts || rule.outcome == provider.Accepted
		c.answer.rules = append(c.answer.rules, rule)
	}
	if !accepts {
		r.Failf("outcomes", "none of them is accepted")
	}
}

// rule reads one entry of outcomes.
func (p parser) rule(entry any) (rule, error) {
	members, ok := settings.Map(entry)
	if !ok {
		return rule{}, errors.New("is not a map")
	}
	r := settings.New(members, p.readFile)
	var out rule
	var err error
	if out.low, out.high, err = statuses(r.Text("status")); err != nil {
		r.Fail("status", err)
	}
	out.codes = texts(r, "code")
	if out.outcome, err = provider.ParseOutcome(r.Text("outcome")); err != nil {
		r.Fail("outcome", err)
	}
	if out.outcome == provider.Accepted && out.high >= http.StatusMultipleChoices {
		r.Failf("outcome", "only a 2xx can be accepted")
	}
	r.RefuseUnknown()
	return out, r.Err()
}

// statuses reads 202 or 4xx.
func statuses(text string) (low, high int, err error) {
	if len(text) == len("4xx") && text[1:] == "xx" && text[0] >= '2' && text[0] <= '5' {
		low = int(text[0]-'0') * 100
		return low, low + 99, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 200 || n > 599 {
		return 0, 0, errors.New("is not a status such as 202 or 4xx")
	}
	return n, n, nil
}

// texts reads a text or a list of them; numbers need no quotes.
func texts(r *settings.Reader, key string) []string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := make([]string, 0, len(list))
	for _, entry := range list {
		switch v := entry.(type) {
		case string, int, int64, uint64, bool:
			out = append(out, fmt.Sprint(v))
		default:
			r.Failf(key, "is neither a text nor a list of texts")
		}
	}
	return out
}

func readPlace(r *settings.Reader, key string, kinds []string) *place {
	text := r.Text(key)
	if text == "" {
		return nil
	}
	p, err := parsePlace(text, kinds)
	if err != nil {
		r.Fail(key, err)
		return nil
	}
	return p
}
