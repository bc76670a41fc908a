// Package httpapi is the adapter for gateways without a special adapter: the routing document
// describes their HTTP API, and this package follows the description.
// A description says how a submission is written (method, address, fields), where an answer has the
// id and the error, the meanings of answers, how callbacks are verified, and where a receipt or a
// subscriber's message has its fields. It is checked when it is applied. Fields are built by
// structure, not by pasting text together: each value is escaped for its place, so that a message
// text cannot become anything else.
// Lookups of submissions, several messages in one call and signed requests are not supported; a
// gateway that needs them needs its own package.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is an account at a gateway.
type Channel struct {
	*web.Channel
	cfg Config
}

var (
	_ web.Adapter = (*Channel)(nil)
	_ web.API     = api{}
)

// api writes and reads as the description says.
type api struct{ cfg *Config }

// Open opens a channel from its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings made.
func New(cfg Config) *Channel {
	c := &Channel{cfg: cfg}
	c.Channel = web.New(cfg.Web, api{&c.cfg})
	return c
}

// errNoKey refuses a submission without a key on a gateway that gives no ids: nothing could
// identify it.
var errNoKey = errors.New("the gateway gives no id, and the submission has no key")

// Send submits a message with one request. If the gateway gives no id, the submission's key is the
// reference.
func (c *Channel) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome != provider.Accepted || c.cfg.answer.id != nil {
		return r
	}
	if s.Key == "" {
		return provider.Result{Outcome: provider.Unknown, Code: "no_key", Err: errNoKey}
	}
	r.Reference = s.Key
	return r
}

// Capabilities are what the description claims of the gateway.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.receipts != nil && c.cfg.Callback != ""
	return provider.Capabilities{
		SameKeyFor: c.cfg.SameKeyFor,
		Receipts:   listens, KeyInReceipt: listens && c.cfg.receipts.key != nil,
	}
}

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
			return nil, errors.New(
				"a header field would hold something else than printable characters")
		}
		header.Set(f.name, text)
	}
	return header, nil
}

// has reports whether the request contains a placeholder with one of the names.
func (r *request) has(names ...string) bool {
	return r.path.has(names...) || r.headers.has(names...) || r.query.has(names...) ||
		r.form.has(names...) ||
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

// fields are the names and values of a query, a form or a header, in the order of their names.
type fields []field

type field struct {
	name  string
	value template
}

// encode writes the fields that have a value, percent-encoded (WHATWG URL,
// application/x-www-form-urlencoded).
func (f fields) encode(value func(part) string) string {
	list := url.Values{}
	for _, field := range f {
		if text, ok := field.value.expand(value, nil); ok {
			list.Set(field.name, text)
		}
	}
	return list.Encode()
}

// has reports whether any field has a placeholder of one of the names.
func (f fields) has(names ...string) bool {
	return slices.ContainsFunc(f, func(field field) bool { return field.value.has(names...) })
}
