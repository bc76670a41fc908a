package bird

import (
	"encoding/json"
	"fmt"

	"dispatcher/provider"
)

// event is what the Channels API posts: the message as it is now.
type event struct {
	Service string `json:"service"`
	Event   string `json:"event"`
	Payload struct {
		ID        string `json:"id"`
		Reference string `json:"reference"`
		Status    string `json:"status"`
		Reason    string `json:"reason"`
		Failure   struct {
			Source struct {
				Code string `json:"code"`
			} `json:"source"`
		} `json:"failure"`
		Sender struct {
			Contact identifier `json:"contact"`
		} `json:"sender"`
		Receiver struct {
			Connector struct {
				Value string `json:"identifierValue"`
			} `json:"connector"`
		} `json:"receiver"`
		Body struct {
			Text struct {
				Text string `json:"text"`
			} `json:"text"`
		} `json:"body"`
	} `json:"payload"`
}

// readEvent reads an event of the Channels API; events of other services and channels mean nothing here.
func readEvent(callback *provider.Callback) (provider.CallbackContent, error) {
	var e event
	if err := json.Unmarshal(callback.Body, &e); err != nil {
		return provider.CallbackContent{}, fmt.Errorf("its JSON: %w", provider.ErrMalformed)
	}
	if e.Service != "channels" {
		return provider.CallbackContent{}, nil
	}
	switch e.Event {
	case "sms.outbound":
		return e.status(callback)
	case "sms.inbound":
		return e.inbound(callback)
	}
	return provider.CallbackContent{}, nil
}

func (e *event) status(callback *provider.Callback) (provider.CallbackContent, error) {
	p := &e.Payload
	receipt := describe(p.Status, p.Reason, p.Failure.Source.Code)
	receipt.Reference, receipt.Key, receipt.At = p.ID, keyOf(p.Reference), callback.At
	if !plainID(p.ID) || p.Status == "" {
		return provider.CallbackContent{}, fmt.Errorf("it has no id or no status: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Receipts: []provider.Receipt{receipt}}, nil
}

func (e *event) inbound(callback *provider.Callback) (provider.CallbackContent, error) {
	p := &e.Payload
	in := provider.Inbound{
		Reference: p.ID, From: number(p.Sender.Contact.Value), To: number(p.Receiver.Connector.Value),
		Text: p.Body.Text.Text, At: callback.At,
	}
	if in.From == "" {
		return provider.CallbackContent{}, fmt.Errorf("it has no sender: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Inbound: []provider.Inbound{in}}, nil
}
