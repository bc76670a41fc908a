package infobip

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is the body of a callback: delivery reports or inbound messages. A report has a status, an
// inbound message has none.
type event struct {
	Results *[]result `json:"results"`
}

type result struct {
	MessageID    string  `json:"messageId"`
	CallbackData string  `json:"callbackData"`
	Status       *status `json:"status"`
	Error        struct {
		ID int `json:"id"`
	} `json:"error"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// ReadCallback returns the content of delivery reports or inbound messages; up to a hundred come at
// once.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	key, err := c.cfg.verify(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if json.Unmarshal(callback.Body, &e) != nil || e.Results == nil {
		return provider.CallbackContent{},
			fmt.Errorf("no list of results: %w", provider.ErrMalformed)
	}
	var content provider.CallbackContent
	for _, r := range *e.Results {
		switch {
		case r.Status == nil && key != "", r.Status != nil && key != "" && r.key() != key:
			return provider.CallbackContent{},
				fmt.Errorf("the address is that of another message: %w", provider.ErrForged)
		case r.Status == nil:
			content.Inbound = append(content.Inbound, provider.Inbound{
				Reference: r.MessageID, From: web.International(r.From),
				To:   web.International(r.To),
				Text: r.Text, At: callback.At,
			})
		case r.MessageID != "":
			content.Receipts = append(content.Receipts, r.receipt(key, callback.At))
		}
	}
	return content, nil
}

// receipt reads a report. proven is the key of the only message that the caller may report on, or
// empty. If the report has another id, which an account may have assigned itself, the id is left
// out, because it could name another message.
func (r *result) receipt(proven string, at time.Time) provider.Receipt {
	receipt := provider.Receipt{Reference: r.MessageID, Key: r.key(), At: at}
	if proven != "" && r.MessageID != proven {
		receipt.Reference = ""
	}
	receipt.State, receipt.Cause = r.Status.state(r.Error.ID)
	receipt.Code = web.SafeCode(r.Status.Name)
	if receipt.Code == "" {
		receipt.Code = web.SafeCode(strconv.Itoa(r.Status.ID))
	}
	if r.Error.ID != 0 {
		receipt.Code += "/" + web.SafeCode(strconv.Itoa(r.Error.ID))
	}
	return receipt
}

// key is the key that we gave to the message: as its id, and in callbackData for accounts that
// assign ids themselves.
func (r *result) key() string {
	for _, text := range []string{r.CallbackData, r.MessageID} {
		if key := web.OwnKey(text); key != "" {
			return key
		}
	}
	return ""
}

// proofs makes and checks the addresses where Infobip reports on one message each.
func (c *Config) proofs() web.Proofs {
	return web.Proofs{Label: "infobip callback ", Secrets: c.Secrets}
}

// verify checks the sender. The caller may report only on the message with the returned key; empty
// means any. It tries all configured ways in constant time.
func (c *Config) verify(callback *provider.Callback) (key string, err error) {
	key, byURL := c.provenByURL(callback)
	basic, header := c.provenByBasic(callback), c.provenByHeader(callback)
	switch {
	case c.by(ByCertificate) && callback.Certificate, c.by(ByBasic) && basic,
		c.by(ByHeader) && header:
		return "", nil
	case c.by(ByURL) && byURL:
		return key, nil
	}
	return "", fmt.Errorf("no proof in the ways that callback_auth names: %w", provider.ErrForged)
}

// provenByURL accepts no proof without a key: that would be for all messages.
func (c *Config) provenByURL(callback *provider.Callback) (key string, ok bool) {
	key, ok = c.proofs().Key(callback.URL)
	return key, ok && key != ""
}

func (c *Config) provenByBasic(callback *provider.Callback) bool {
	encoded, ok := strings.CutPrefix(callback.Get("Authorization"), "Basic ")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return false
	}
	user, password, _ := strings.Cut(string(decoded), ":")
	return c.isSecret(password) && web.SameSecret(user, c.User)
}

func (c *Config) provenByHeader(callback *provider.Callback) bool {
	return c.Header != "" && c.isSecret(callback.Get(c.Header))
}

func (c *Config) isSecret(given string) bool {
	ok := false
	for _, secret := range c.Secrets {
		ok = web.SameSecret(given, secret) || ok
	}
	return ok
}
