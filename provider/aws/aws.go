// Package aws is the adapter for AWS End User Messaging SMS (pinpoint-sms-voice-v2, API version
// 2022-03-31).
//
// It writes and reads the one operation that it needs, SendTextMessage in AWS JSON 1.0. Credentials
// and signatures come from AWS's SDK for Go. Package provider/web sends the request, so one call is
// one request. Events and subscribers' messages come through Amazon SNS and are verified with the
// certificate or the secret from the settings.
package aws

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is an account at AWS in one region.
type Channel struct {
	*web.Channel
	cfg  Config
	keys *keys
}

var _ web.Adapter = (*Channel)(nil)

// Open opens a channel from its settings. Settings that ask for the default credentials read the
// environment and the shared files; no connection is made.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, configure, New)
}

// configure reads settings, and gets the credentials that are not among them.
func configure(values map[string]any, o web.Environment) (Config, error) {
	cfg, err := ParseSettings(values, o)
	if err == nil && cfg.DefaultCredentials {
		cfg.Credentials, err = defaultCredentials(&cfg)
	}
	return cfg, err
}

// New returns a channel. The configuration is one that ParseSettings accepts, with credentials.
func New(cfg Config) *Channel {
	k := &keys{source: aws.NewCredentialsCache(cfg.Credentials)}
	return &Channel{Channel: web.New(cfg.Web, newAPI(cfg, k)), cfg: cfg, keys: k}
}

// keys are the credentials that sign the next request.
type keys struct {
	source  *aws.CredentialsCache
	current atomic.Pointer[aws.Credentials]
}

// refresh asks the source, which answers at once unless its last credentials are about to expire.
func (k *keys) refresh(ctx context.Context) error {
	given, err := k.source.Retrieve(ctx)
	if err != nil {
		return err
	}
	k.current.Store(&given)
	return nil
}

// errCredentials replaces the source's error, which may show addresses and names of roles.
var errCredentials = errors.New("no credentials of AWS are available")

// Send submits a message with one request. Missing or expiring credentials are fetched before its
// first byte leaves.
func (c *Channel) Send(ctx context.Context, s provider.Submission) provider.Result {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if begins := s.Begins(); !begins.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, begins)
	}
	defer cancel()
	err := c.keys.refresh(waiting)
	switch {
	case err != nil && s.Withheld(time.Now()) != "":
		return provider.Result{
			Outcome: provider.Refused, Code: s.Withheld(time.Now()), Err: errCredentials,
		}
	case err != nil:
		return provider.Result{Outcome: provider.Refused, Code: "credentials", Err: errCredentials}
	}
	return c.Channel.Send(ctx, s)
}

// Capabilities says what AWS documents. SendTextMessage has no idempotency token and no lookup; its
// Context map comes back with every event.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.acceptsCallbacks()
	return provider.Capabilities{Receipts: receipts, KeyInReceipt: receipts}
}

// credentialTimeout bounds one request for credentials.
const credentialTimeout = 5 * time.Second

// defaultCredentials finds the credentials that AWS's own tools use. They are fetched when the
// first message is sent: from the environment, shared files, a web identity, or the address in the
// container's environment; from the machine's metadata service only if the settings allow it. The
// environment's proxy is not used.
func defaultCredentials(cfg *Config) (aws.CredentialsProvider, error) {
	metadata := imds.ClientDisabled
	if cfg.InstanceMetadata {
		metadata = imds.ClientEnabled
	}
	// The SDK's own client, because it takes the authorities that AWS_CA_BUNDLE names.
	client := awshttp.NewBuildableClient().WithTimeout(credentialTimeout)
	client = client.WithTransportOptions(func(t *http.Transport) {
		t.DisableKeepAlives, t.Proxy = true, nil
		if cfg.Web.Proxy != nil {
			t.Proxy = http.ProxyURL(cfg.Web.Proxy)
		}
	})
	found, err := config.LoadDefaultConfig(context.Background(),
		config.WithRegion(cfg.Region), config.WithEC2IMDSClientEnableState(metadata),
		config.WithHTTPClient(client),
	)
	if err != nil {
		return nil, errors.New("credentials: the environment or a shared file of AWS cannot be read")
	}
	return found.Credentials, nil
}
