package vonage

import (
	"encoding/json"
	"fmt"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is the body of a callback of the Messages API: the status of a message, or an inbound message, which has none.
type event struct {
	Channel   string `json:"channel"`
	UUID      string `json:"message_uuid"`
	Status    string `json:"status"`
	ClientRef string `json:"client_ref"`
	Error     struct {
		Type  string `json:"type"`
		Title string `json:"title"`
	} `json:"error"`
	From        string `json:"from"`
	To          string `json:"to"`
	MessageType string `json:"message_type"`
	Text        string `json:"text"`
}

// hearStatus reads a callback of the Messages API.
func (c *Config) hearStatus(callback *provider.Callback) (provider.CallbackContent, error) {
	once, err := c.verifyToken(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if json.Unmarshal(callback.Body, &e) != nil {
		return provider.CallbackContent{}, fmt.Errorf("no JSON of a known shape: %w", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: once}
	switch {
	case e.Channel != "sms": // another product of the same account
	case e.Status != "":
		receipt := provider.Receipt{Reference: e.UUID, At: callback.At}
		code := problemCode(e.Error.Type)
		if code == "" {
			code = e.Error.Title
		}
		receipt.State, receipt.Cause = statusState(e.Status, code)
		content.Receipts, err = complete(receipt, e.ClientRef, e.Status, code)
	case e.MessageType == "text" || e.MessageType == "":
		content.Inbound = []provider.Inbound{{
			Reference: e.UUID, From: international(e.From), To: international(e.To), Text: e.Text, At: callback.At,
		}}
	}
	if err != nil {
		return provider.CallbackContent{}, err
	}
	return content, nil
}

// maxCode bounds a code: it becomes a column.
const maxCode = 64

// complete gives a receipt its key, when the reference is one of ours, and its code.
func complete(receipt provider.Receipt, reference, status, code string) ([]provider.Receipt, error) {
	if ourKey.MatchString(reference) {
		receipt.Key = reference
	}
	if receipt.Reference == "" && receipt.Key == "" {
		return nil, fmt.Errorf("a receipt for nothing: %w", provider.ErrMalformed)
	}
	receipt.Code = web.SafeCode(status)
	if code = web.SafeCode(code); code != "" && code != "0" {
		receipt.Code += "/" + code
	}
	if len(receipt.Code) > maxCode {
		receipt.Code = "other"
	}
	return []provider.Receipt{receipt}, nil
}
