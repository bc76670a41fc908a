package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is an event about a message, or a message of a subscriber.
type event struct {
	EventType string            `json:"eventType"`
	IsFinal   *bool             `json:"isFinal"`
	MessageID string            `json:"messageId"`
	Context   map[string]string `json:"context"`

	From      string `json:"originationNumber"`
	To        string `json:"destinationNumber"`
	Body      string `json:"messageBody"`
	InboundID string `json:"inboundMessageId"`
}

// ReadCallback returns the content of an SNS message. A confirmation of a subscription has none;
// Confirm answers it.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	e, err := c.cfg.verify(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	if e.Type != notification {
		return provider.CallbackContent{}, nil
	}
	var said event
	if err := json.Unmarshal([]byte(e.Message), &said); err != nil {
		return provider.CallbackContent{}, fmt.Errorf("its message: %w", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: e.MessageID}
	switch {
	case strings.HasPrefix(said.EventType, "TEXT_"):
		receipt := c.receipt(&said)
		if !web.PlainID(said.MessageID) {
			return provider.CallbackContent{}, fmt.Errorf("it has no id: %w", provider.ErrMalformed)
		}
		receipt.At = callback.At
		content.Receipts = []provider.Receipt{receipt}
	case said.InboundID != "" && said.From != "":
		content.Inbound = []provider.Inbound{{
			Reference: said.InboundID, From: said.From, To: said.To, Text: said.Body,
			At: callback.At,
		}}
	}
	return content, nil
}

// eventType is the result of a message ("Event types for SMS, MMS, and voice" of the AWS End User
// Messaging SMS User Guide).
type eventType string

// Types of events that end a message.
const (
	textDelivered          eventType = "TEXT_DELIVERED"
	textSuccessful         eventType = "TEXT_SUCCESSFUL"
	textInvalid            eventType = "TEXT_INVALID"
	textInvalidMessage     eventType = "TEXT_INVALID_MESSAGE"
	textUnreachable        eventType = "TEXT_UNREACHABLE"
	textCarrierUnreachable eventType = "TEXT_CARRIER_UNREACHABLE"
	textBlocked            eventType = "TEXT_BLOCKED"
	textCarrierBlocked     eventType = "TEXT_CARRIER_BLOCKED"
	textProtectBlocked     eventType = "TEXT_PROTECT_BLOCKED"
	textSpam               eventType = "TEXT_SPAM"
	textTTLExpired         eventType = "TEXT_TTL_EXPIRED"
)

// causes has the cause of each event that reports a message as not delivered.
var causes = map[eventType]provider.Cause{
	textInvalid:            provider.UnknownNumber,
	textInvalidMessage:     provider.Unspecified,
	textUnreachable:        provider.Absent,
	textCarrierUnreachable: provider.NetworkError,
	textBlocked:            provider.Blocked,
	textCarrierBlocked:     provider.Blocked,
	textProtectBlocked:     provider.Blocked,
	textSpam:               provider.Spam,
	textTTLExpired:         provider.Expired,
}

// receipt reads an event about a message. TEXT_UNKNOWN means that AWS got no report for three days,
// TEXT_SUCCESSFUL that the carrier took the message: neither is final. An event that is not marked
// final leaves the message Pending.
func (c *Channel) receipt(e *event) provider.Receipt {
	kind := eventType(e.EventType)
	r := provider.Receipt{
		Reference: e.MessageID, Key: web.OwnKey(e.Context[contextKey]), Code: "other",
	}
	if name(e.EventType) && len(e.EventType) <= 40 {
		r.Code = e.EventType
	}
	cause, failed := causes[kind]
	switch {
	case kind == textDelivered, kind == textSuccessful && c.cfg.SuccessfulIsDelivered:
		r.State = provider.Delivered
	case failed && (e.IsFinal == nil || *e.IsFinal):
		r.State, r.Cause = provider.Undelivered, cause
	}
	return r
}

// Confirm answers a SubscriptionConfirmation of one of the configured topics, by which SNS asks
// whether a subscribed URL wants its messages. Any other callback is ignored (false). It verifies
// like ReadCallback and follows no address in the message: it calls SNS in the topic's own region.
func (c *Channel) Confirm(
	ctx context.Context, callback *provider.Callback,
) (confirmed bool, err error) {
	e, err := c.cfg.verify(callback)
	if err != nil {
		return false, err
	}
	arn := topic.FindStringSubmatch(e.TopicArn)
	if e.Type != confirmation || arn == nil || len(c.cfg.Topics) == 0 {
		return false, nil
	}
	query := url.Values{
		"Action": {"ConfirmSubscription"}, "Version": {"2010-03-31"}, "TopicArn": {e.TopicArn},
		"Token": {e.Token},
	}
	answer, err := c.Ask(
		ctx, &web.Request{Method: http.MethodGet, URL: c.cfg.sns(arn[1]) + "/?" + query.Encode()})
	if err != nil {
		return false, fmt.Errorf("confirm the subscription of a topic: %w", err)
	}
	if answer.Status != http.StatusOK {
		return false, errors.New("confirm the subscription of a topic: SNS says no")
	}
	return true, nil
}

// sns is the base address of SNS.
func (c *Config) sns(region string) string {
	if c.SNSBase != "" {
		return c.SNSBase
	}
	return "https://sns." + region + ".amazonaws.com"
}
