package httpapi

import (
	"fmt"
	"net/url"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// receipts describes where a receipt has its fields.
type receipts struct {
	each      *place // an array of receipts; nil: the callback is one
	reference *place
	key       *place
	state     *place
	code      *place
	states    map[string]provider.ReceiptState
	causes    map[string]provider.Cause // by code, or by the word of the state
}

// inbound is where a subscriber's message has its fields.
type inbound struct{ reference, from, to, text *place }

// reply is the answer to callbacks.
type reply struct{ body, contentType string }

// maxReceipts bounds those of one callback.
const maxReceipts = 1000

// ReadCallback verifies the sender and reads the content. A callback with a state is a receipt, one
// with a sender and a text is a message, any other is ignored.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	_, query, _ := strings.Cut(callback.URL, "?")
	values, malformed := url.ParseQuery(query)
	d := &document{header: callback.Header, query: values, body: callback.Body}
	once, err := c.cfg.verify.check(callback, d)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	if malformed != nil {
		return provider.CallbackContent{}, fmt.Errorf("its query: %w", provider.ErrMalformed)
	}
	if err := c.cfg.read(d); err != nil {
		return provider.CallbackContent{}, fmt.Errorf("%w: %w", err, provider.ErrMalformed)
	}
	content, err := c.cfg.contentOf(d)
	if err != nil {
		return provider.CallbackContent{}, fmt.Errorf("%w: %w", err, provider.ErrMalformed)
	}
	for i := range content.Receipts {
		content.Receipts[i].At = callback.At
	}
	for i := range content.Inbound {
		content.Inbound[i].At = callback.At
	}
	content.ReplayID, content.Answer, content.AnswerType = once, c.cfg.reply.body,
		c.cfg.reply.contentType
	return content, nil
}

// read parses the body as the description needs it.
func (c *Config) read(d *document) error {
	if c.kinds["form"] {
		form, err := url.ParseQuery(string(d.body))
		if err != nil {
			return fmt.Errorf("its form cannot be read")
		}
		d.form = form
	}
	if c.kinds["json"] && len(d.body) > 0 {
		return d.parseJSON()
	}
	return nil
}

func (c *Config) contentOf(d *document) (provider.CallbackContent, error) {
	list, err := c.receipts.all(d)
	if err != nil || len(list) > 0 {
		return provider.CallbackContent{Receipts: list}, err
	}
	in, ok := c.inbound.message(d)
	if !ok {
		return provider.CallbackContent{}, nil
	}
	return provider.CallbackContent{Inbound: []provider.Inbound{in}}, nil
}

// all are the receipts of a callback.
func (r *receipts) all(d *document) ([]provider.Receipt, error) {
	if r == nil {
		return nil, nil
	}
	if r.each == nil {
		return r.one(d, nil)
	}
	at, _ := walk(d.tree, r.each.pointer)
	entries, ok := at.([]any)
	if !ok {
		return nil, nil
	}
	if len(entries) > maxReceipts {
		return nil, fmt.Errorf("it has more than %d receipts", maxReceipts)
	}
	var list []provider.Receipt
	for _, entry := range entries {
		inner := *d
		inner.tree = entry
		var err error
		if list, err = r.one(&inner, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// one appends the receipt of a document, if it has a state.
func (r *receipts) one(d *document, list []provider.Receipt) ([]provider.Receipt, error) {
	state, ok := r.state.find(d)
	if !ok {
		return list, nil
	}
	code, _ := r.code.find(d)
	reference, _ := r.reference.find(d)
	key, _ := r.key.find(d)
	receipt := provider.Receipt{
		State: r.states[state], Code: "other", Reference: reference, Key: web.OwnKey(key),
	}
	if web.Showable(state) {
		receipt.Code = state
	}
	if web.Showable(code) {
		receipt.Code += "/" + code
	}
	if receipt.State == provider.Undelivered {
		receipt.Cause = r.cause(state, code)
	}
	if r.reference == nil {
		receipt.Reference = receipt.Key // as Send does
	}
	if !web.PlainID(receipt.Reference) {
		receipt.Reference = ""
	}
	if receipt.Reference == "" && receipt.Key == "" {
		return nil, fmt.Errorf("a receipt has no reference")
	}
	return append(list, receipt), nil
}

func (r *receipts) cause(state, code string) provider.Cause {
	if cause, known := r.causes[code]; known {
		return cause
	}
	return r.causes[state]
}

func (in *inbound) message(d *document) (provider.Inbound, bool) {
	if in == nil {
		return provider.Inbound{}, false
	}
	from, hasFrom := in.from.find(d)
	text, hasText := in.text.find(d)
	to, _ := in.to.find(d)
	reference, _ := in.reference.find(d)
	if !web.PlainID(reference) {
		reference = ""
	}
	return provider.Inbound{
		Reference: reference, From: web.International(from), To: web.International(to), Text: text,
	}, hasFrom && hasText && from != ""
}
