// Package awstest is the server side of AWS End User Messaging SMS and SNS, for package webtest: it
// verifies the signature of each request (Signature Version 4), answers in the AWS JSON 1.0
// protocol, and publishes events signed like those of SNS. It is written from the documentation and
// shares no code with the adapter or with AWS's SDK.
package awstest

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// Config describes an account.
type Config struct {
	Region, AccessKeyID, SecretAccessKey string
	// SessionToken belongs to temporary keys; empty for lasting ones.
	SessionToken string
	// Topic is the ARN of the topic that events go to, and Callback the URL that is subscribed to
	// it.
	Topic, Callback string
	// Key signs what the topic publishes, by SignatureVersion 2 or, if Version1, 1; nil leaves it
	// unsigned.
	Key      *rsa.PrivateKey
	Version1 bool
	// Secret, if set, is in the query of the subscribed URL.
	Secret string
}

// New returns the protocol of an account.
func New(cfg Config) webtest.Protocol { return protocol{cfg} }

type protocol struct{ cfg Config }

// input is what SendTextMessage takes.
type input struct {
	DestinationPhoneNumber, OriginationIdentity, MessageBody, MessageType string
	ConfigurationSetName, MaxPrice, ProtectConfigurationID                string
	TimeToLive                                                            *int
	Context, DestinationCountryParameters                                 map[string]string
}

// Read takes SendTextMessage.
func (p protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if err := p.cfg.authentic(r, body); err != nil {
		return webtest.Submit{}, err
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.URL.RawQuery != "":
		return webtest.Submit{}, fmt.Errorf("%s %s is not part of this API", r.Method, r.URL.Path)
	case r.Header.Get("X-Amz-Target") != "PinpointSMSVoiceV2.SendTextMessage",
		r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		return webtest.Submit{}, errors.New("not SendTextMessage in JSON 1.0")
	}
	var in input
	if err := webtest.DecodeStrict(body, &in); err != nil {
		return webtest.Submit{}, err
	}
	switch {
	case !strings.HasPrefix(in.DestinationPhoneNumber, "+"), in.MessageBody == "":
		return webtest.Submit{}, errors.New("no recipient or no text")
	case utf8.RuneCountInString(in.MessageBody) > 1600, strings.TrimSpace(in.MessageBody) == "":
		return webtest.Submit{},
			errors.New("a text of another length than 1 to 1600, or of white space")
	case in.MessageType != "TRANSACTIONAL" && in.MessageType != "PROMOTIONAL":
		return webtest.Submit{}, errors.New("no type of message")
	case in.TimeToLive != nil && (*in.TimeToLive < 5 || *in.TimeToLive > 259200):
		return webtest.Submit{}, errors.New("TimeToLive out of range")
	case len(in.Context) > 5:
		return webtest.Submit{}, errors.New("too much context")
	}
	return webtest.Submit{
		To: in.DestinationPhoneNumber, From: in.OriginationIdentity, Text: in.MessageBody,
		Key: in.Context["dispatcher"], Callback: p.cfg.Callback,
	}, nil
}

// Write answers as the service does.
func (p protocol) Write(w http.ResponseWriter, submit *webtest.Submit, v providertest.Answer) {
	switch v.Reply {
	case providertest.Reject:
		exception(w, "ConflictException", map[string]any{
			"Message": "Destination phone number is opted out",
			"Reason":  "DESTINATION_PHONE_NUMBER_OPTED_OUT", "ResourceType": "phone-number",
			"ResourceId": submit.To,
		})
	case providertest.Refuse:
		exception(w, "ServiceQuotaExceededException",
			map[string]any{
				"Message": "Spend limit", "Reason": "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT",
			})
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		exception(w, "ThrottlingException", map[string]any{"Message": "Rate exceeded"})
	case providertest.Accept, providertest.Lose, providertest.Cut:
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		webtest.WriteJSON(w, http.StatusOK, map[string]string{"MessageId": submit.Reference})
	}
}

func exception(w http.ResponseWriter, name string, fields map[string]any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	fields["__type"] = "com.amazonaws.pinpointsmsvoicev2#" + name
	webtest.WriteJSON(w, http.StatusBadRequest, fields)
}

// Receipt publishes an event.
func (p protocol) Receipt(submit *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if submit.Callback == "" {
		return nil, nil //nolint:nilnil // Nobody has subscribed.
	}
	kind := r.Code
	if kind == "" {
		kind = map[provider.ReceiptState]string{
			provider.Pending: "TEXT_SENT", provider.Delivered: "TEXT_DELIVERED",
			provider.Undelivered: "TEXT_UNREACHABLE",
		}[r.State]
	}
	context := map[string]string{}
	if submit.Key != "" {
		context["dispatcher"] = submit.Key
	}
	return p.cfg.Publish(submit.Callback, map[string]any{
		"eventType": kind, "eventVersion": "1.0", "eventTimestamp": stamp().UnixMilli(),
		"isFinal":                r.State.Final(),
		"originationPhoneNumber": submit.From, "destinationPhoneNumber": submit.To,
		"isoCountryCode": "GB", "messageId": submit.Reference,
		"messageRequestTimestamp": submit.At.UnixMilli(), "messageEncoding": "GSM",
		"messageType":   "TRANSACTIONAL",
		"messageStatus": strings.TrimPrefix(kind, "TEXT_"), "context": context,
		"totalMessageParts": submit.Parts,
		"totalMessagePrice": 0.04, "totalCarrierFee": 0.0,
	})
}

// Inbound publishes a message of a two-way number.
func (p protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return p.cfg.Publish(callback, map[string]any{
		"originationNumber": in.From, "destinationNumber": in.To, "messageKeyword": "KEYWORD_1",
		"messageBody":      in.Text,
		"inboundMessageId": in.Reference, "previousPublishedMessageId": "",
	})
}
