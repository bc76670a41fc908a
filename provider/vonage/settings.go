package vonage

import (
	"crypto/rsa"

	"github.com/golang-jwt/jwt/v5"

	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// API is one of the interfaces that Vonage offers.
type API uint8

const (
	// Messages is the Messages API v1.
	Messages API = iota
	// SMS is the SMS API.
	SMS
)

// Where the APIs begin.
const (
	messagesBase = "https://api.nexmo.com"
	smsBase      = "https://rest.nexmo.com"
)

// Config is an account or an application at Vonage.
type Config struct {
	Web web.Config
	API API
	// APIKey and APISecret are those of the account.
	APIKey, APISecret string
	// Application is the id of an application, and PrivateKey its key; with them the Messages API is
	// called with a JWT instead of the account's secret.
	Application string
	PrivateKey  *rsa.PrivateKey
	// Secrets verify callbacks; without one every callback is refused and none is asked for.
	Secrets []string
	// From is the sender of messages that name none.
	From string
	// Callback is the public URL for receipts; empty for none.
	Callback string
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its key.
//
//	api                     messages (default): the Messages API v1; or sms: the SMS API
//	api_key                 key of the account; callbacks of other accounts are refused
//	api_secret_file         file with its secret; needed unless an application is named
//	application_id          id of an application of the Messages API, called with a JWT
//	private_key_file        file with the application's private key, PEM
//	signature_secret_files  file with the secret that signs callbacks, or a list of two while it is exchanged;
//	                        without it receipts are neither asked for nor believed
//	from                    sender of messages that name none
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		API:         settings.Choose(r, "api", map[string]API{"messages": Messages, "sms": SMS}),
		APIKey:      r.Text("api_key"),
		APISecret:   web.Secret(r, "api_secret_file"),
		Application: r.Text("application_id"),
		PrivateKey:  privateKey(r, "private_key_file"),
		Secrets:     web.Secrets(r, "signature_secret_files", o.ReadFile),
		From:        r.Text("from"),
		Callback:    o.Callback,
	}
	base := messagesBase
	if cfg.API == SMS {
		base = smsBase
	}
	cfg.Web = web.ParseConfig(r, base)
	cfg.check(r)
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

func (c *Config) check(r *settings.Reader) {
	if c.API == SMS && c.Application != "" {
		r.Failf("application_id", "belongs to api: messages")
	}
	if c.Application != "" {
		if c.PrivateKey == nil {
			r.Failf("private_key_file", "is missing")
		}
		return
	}
	if c.PrivateKey != nil {
		r.Failf("application_id", "is missing")
	}
	if c.APIKey == "" {
		r.Failf("api_key", "is missing")
	}
	if c.APISecret == "" {
		r.Failf("api_secret_file", "is missing")
	}
}

// leastKey is the shortest RSA key that is taken, in bytes.
const leastKey = 2048 / 8

func privateKey(r *settings.Reader, name string) *rsa.PrivateKey {
	content := r.File(name)
	if content == nil {
		return nil
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(content)
	switch {
	case err != nil: // its text could show content
		r.Failf(name, "holds no RSA private key in PEM form")
	case key.Size() < leastKey:
		r.Failf(name, "holds a key of %d bits; Vonage's have 2048", key.N.BitLen())
	}
	return key
}

// listens reports whether callbacks are wanted and can be believed.
func (c *Config) listens() bool { return c.Callback != "" && len(c.Secrets) > 0 }
