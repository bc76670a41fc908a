package aws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	sms "github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2"

	"dispatcher/provider/web"
)

// errCaptured ends an operation of the SDK when its request is written.
var errCaptured = errors.New("written")

// capture is the SDK's way to the wire when it shall only write: it keeps the request.
type capture struct{ request *web.Request }

// Do implements aws.HTTPClient.
func (c *capture) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.request = &web.Request{Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone(), Body: body}
	return nil, errCaptured
}

// replay is the SDK's way to the wire when it shall only read: it gives the answer that came.
type replay struct{ answer *web.Answer }

// Do implements aws.HTTPClient.
func (c replay) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.answer.Status, Header: c.answer.Header.Clone(), Body: io.NopCloser(bytes.NewReader(c.answer.Body)),
		ContentLength: int64(len(c.answer.Body)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// newWriter and newReader return the SDK's client without a way to the wire. What the reader writes goes nowhere, and is
// not signed.
func newWriter(cfg *Config) *sms.Client { return sms.New(options(cfg)) }

func newReader(cfg *Config) *sms.Client {
	o := options(cfg)
	o.HTTPSignerV4, o.Credentials = unsigned{}, fixed{aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}}
	return sms.New(o)
}

func options(cfg *Config) sms.Options {
	return sms.Options{Region: cfg.Region, BaseEndpoint: aws.String(cfg.Web.BaseURL.String()), Retryer: aws.NopRetryer{}}
}

// write lets the SDK write and sign a submission with given credentials.
func write(client *sms.Client, input *sms.SendTextMessageInput, with aws.Credentials) (*web.Request, error) {
	wire := &capture{}
	_, err := client.SendTextMessage(context.Background(), input, func(o *sms.Options) {
		o.HTTPClient, o.Credentials = wire, fixed{with}
	})
	if wire.request == nil {
		return nil, errors.Join(errors.New("the SDK does not write this message"), bare(err))
	}
	return wire.request, nil
}

// read lets the SDK read an answer.
func read(client *sms.Client, answer *web.Answer) (*sms.SendTextMessageOutput, error) {
	input := &sms.SendTextMessageInput{DestinationPhoneNumber: aws.String("+")} // the SDK insists on one
	return client.SendTextMessage(context.Background(), input, func(o *sms.Options) { o.HTTPClient = replay{answer} })
}

// fixed are credentials that do not change.
type fixed struct{ aws.Credentials }

// Retrieve implements aws.CredentialsProvider.
func (f fixed) Retrieve(context.Context) (aws.Credentials, error) { return f.Credentials, nil }

// unsigned leaves a request that goes nowhere as it is.
type unsigned struct{}

// SignHTTP implements sms.HTTPSignerV4.
func (unsigned) SignHTTP(
	context.Context, aws.Credentials, *http.Request, string, string, string, time.Time, ...func(*v4.SignerOptions),
) error {
	return nil
}

// bare leaves of an error of the SDK, which may show the input, that there was one.
func bare(err error) error {
	if err == nil {
		return nil
	}
	return errors.New("its input is refused")
}
