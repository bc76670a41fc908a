package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Bounds of how long AWS keeps a message (TimeToLive of SendTextMessage).
const (
	shortestValidity = 5 * time.Second
	longestValidity  = 72 * time.Hour
)

// longestText is how many characters MessageBody may have (TextMessageBody of the API's model,
// which also refuses texts of white space alone).
const longestText = 1600

// contextKey is the name of our reference in the Context map.
const contextKey = "dispatcher"

// api writes and reads SendTextMessage.
type api struct {
	cfg    Config
	writer *writer
	keys   *keys
}

var _ web.API = (*api)(nil)

func newAPI(cfg Config, k *keys) *api {
	return &api{cfg: cfg, writer: newWriter(&cfg), keys: k}
}

// Compose writes a submission. AWS splits texts itself and chooses the alphabet by the same rule as
// package sms: GSM 03.38 where it suffices, UCS-2 otherwise.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	if err := fits(s.Text); err != nil {
		return nil, err
	}
	with := a.keys.current.Load()
	if with == nil {
		return nil, errors.New("there are no credentials")
	}
	return a.writer.write(a.input(s), *with)
}

// fits returns an error if AWS does not accept a text.
func fits(text string) error {
	switch {
	case text == "":
		return web.Unsendable("there is no text")
	case strings.TrimSpace(text) == "":
		return errors.New("the text is white space alone")
	case utf8.RuneCountInString(text) > longestText:
		return errors.New("the text has more than 1600 characters")
	}
	return nil
}

func (a *api) input(s *provider.Submission) *input {
	in := &input{
		DestinationPhoneNumber: s.To, MessageBody: s.Text, MessageType: a.cfg.MessageType,
		OriginationIdentity:    cmp.Or(s.From, a.cfg.From),
		ConfigurationSetName:   a.cfg.ConfigurationSet,
		ProtectConfigurationID: a.cfg.ProtectID, MaxPrice: a.cfg.MaxPrice,
		DestinationCountryParameters: a.cfg.CountryParameters,
	}
	if s.Key != "" {
		in.Context = map[string]string{contextKey: s.Key}
	}
	if ends := s.Ends(); !ends.IsZero() {
		left := max(min(time.Until(ends), longestValidity), shortestValidity)
		in.TimeToLive = int(math.Ceil(left.Seconds()))
	}
	return in
}

// How SendTextMessage is called: in AWS JSON 1.0 every operation is posted to "/", and the header
// names it.
const (
	operation   = "PinpointSMSVoiceV2.SendTextMessage"
	contentType = "application/x-amz-json-1.0"
	// signingName is what the service is called in the scope of a signature.
	signingName = "sms-voice"
)

// input holds the parameters of SendTextMessage that are used here. Empty ones are left out, so
// that AWS uses its default.
type input struct {
	DestinationPhoneNumber string
	MessageBody            string
	MessageType            MessageType
	OriginationIdentity    string `json:",omitempty"`
	ConfigurationSetName   string `json:",omitempty"`
	ProtectConfigurationID string `json:"ProtectConfigurationId,omitempty"`
	MaxPrice               string `json:",omitempty"`
	// TimeToLive in seconds.
	TimeToLive                   int               `json:",omitempty"`
	Context                      map[string]string `json:",omitempty"`
	DestinationCountryParameters map[string]string `json:",omitempty"`
}

// writer writes requests and signs them. It is safe for concurrent use.
type writer struct {
	endpoint url.URL
	region   string
	signer   *v4.Signer // keeps the keys that it derives, which change once a day
}

func newWriter(cfg *Config) *writer {
	return &writer{endpoint: endpoint(cfg.Web.BaseURL), region: cfg.Region, signer: v4.NewSigner()}
}

// endpoint is the address of requests. It leaves out the default port of the scheme: the signature
// covers the host without it, and net/http would send the host with it.
func endpoint(base *url.URL) url.URL {
	e := *base.JoinPath("/")
	switch e.Scheme {
	case "https":
		e.Host = strings.TrimSuffix(e.Host, ":443")
	case "http":
		e.Host = strings.TrimSuffix(e.Host, ":80")
	}
	return e
}

// write writes a request and signs it with the current time: AWS accepts a signature for a few
// minutes.
func (w *writer) write(in *input, with aws.Credentials) (*web.Request, error) {
	body, err := json.Marshal(in)
	if err != nil { // its text could contain the message
		return nil, errors.New("the message cannot be written as JSON")
	}
	target := w.endpoint // the signer writes to it
	r := &http.Request{
		Method: http.MethodPost, URL: &target, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {contentType}, "X-Amz-Target": {operation}},
	}
	if err := w.signer.SignHTTP(context.Background(), with, r, web.HexSHA256(body),
		signingName, w.region, time.Now()); err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	return &web.Request{Method: r.Method, URL: target.String(), Header: r.Header, Body: body}, nil
}
