package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// StatusWebhook is where the status events of a tenant are sent.
type StatusWebhook struct {
	// Name is part of the consumer group's name and a label of metrics; it must never change.
	Name string
	// Tenant is the tenant whose events are sent; empty for all tenants without a webhook of their
	// own, and for events without a tenant.
	Tenant string
	URL    string
	// Secrets sign every request, each with a signature of its own, so that a receiver can change its
	// secret.
	Secrets [][]byte
	// States are those that are sent; empty for all.
	States []string
	// MaxAge is how long an event is sent again while the receiver does not accept it.
	MaxAge time.Duration
	// AllowPrivate allows an address on this machine or in a private network, and plain HTTP.
	AllowPrivate bool
}

// maxAge is the default of MaxAge.
const maxAge = 24 * time.Hour

// statusWebhooks is the content of the file.
type statusWebhooks struct {
	Webhooks []struct {
		Name         string   `yaml:"name"`
		Tenant       string   `yaml:"tenant"`
		URL          string   `yaml:"url"`
		SecretFiles  []string `yaml:"secret_files"`
		States       []string `yaml:"states"`
		MaxAge       string   `yaml:"max_age"`
		AllowPrivate bool     `yaml:"allow_private"`
	} `yaml:"webhooks"`
}

// StatusWebhooks reads the file of DISPATCHER_STATUS_WEBHOOKS_FILE, and the secrets that it names
// from the folder of secrets. Without that setting there are none.
func (s *Settings) StatusWebhooks() ([]StatusWebhook, error) {
	const setting = Prefix + "_STATUS_WEBHOOKS_FILE"
	if s.StatusWebhooksFile == "" {
		return nil, nil
	}
	text, err := readSecretFile(setting, s.StatusWebhooksFile)
	if err != nil {
		return nil, err
	}
	secrets := s.Secrets()
	secrets.noWebhooks = false
	hooks, err := parseStatusWebhooks([]byte(text), secrets)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", setting, s.StatusWebhooksFile, err)
	}
	return hooks, nil
}

func parseStatusWebhooks(text []byte, secrets *SecretsFolder) ([]StatusWebhook, error) {
	var file statusWebhooks
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	var hooks []StatusWebhook
	names, tenants := map[string]bool{}, map[string]bool{}
	for i := range file.Webhooks {
		f := &file.Webhooks[i]
		w := StatusWebhook{
			Name: f.Name, Tenant: f.Tenant, URL: f.URL, States: f.States, MaxAge: maxAge,
			AllowPrivate: f.AllowPrivate,
		}
		err := w.check(f.MaxAge)
		switch {
		case err != nil:
		case names[w.Name]:
			err = errors.New("has the name of another one")
		case tenants[w.Tenant]:
			err = fmt.Errorf("is the second one of tenant %q; each has one", w.Tenant)
		default:
			err = w.readSecrets(f.SecretFiles, secrets)
		}
		if err != nil {
			return nil, fmt.Errorf("webhook %d (%s): %w", i+1, w.Name, err)
		}
		names[w.Name], tenants[w.Tenant] = true, true
		hooks = append(hooks, w)
	}
	return hooks, nil
}

// eventStates are the states of status events, as docs/schema/status.schema.json has them.
var eventStates = []string{
	"scheduled", "waiting", "retry", "sending", "accepted", "delivered", "undelivered",
	"no_receipt", "rejected", "failed", "unknown", "dead",
}

func (w *StatusWebhook) check(age string) error {
	if !isName(w.Name, false) {
		return errors.New("name is not 1 to 64 letters, digits, dots, dashes and underscores")
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
		return errors.New("url is not an https address such as https://shop.example.com/sms")
	case u.Scheme == "http" && !w.AllowPrivate:
		return errors.New("url is http; write https, or allow_private: true for a receiver on this " +
			"machine or in a private network")
	}
	for _, state := range w.States {
		if !slices.Contains(eventStates, state) {
			return fmt.Errorf("state %q is unknown; %s", state,
				suggest(state, eventStates, "use "+strings.Join(eventStates, ", ")))
		}
	}
	if age != "" {
		if w.MaxAge, err = time.ParseDuration(age); err != nil || w.MaxAge < time.Minute ||
			w.MaxAge > 30*day {
			return errors.New("max_age is not a duration of 1m to 720h, such as 24h")
		}
	}
	return nil
}

// secretPrefix precedes the base64 of a secret of Standard Webhooks. No routing document may use a
// file that begins with it.
const secretPrefix = "whsec_"

func (w *StatusWebhook) readSecrets(files []string, secrets *SecretsFolder) error {
	if len(files) == 0 {
		return errors.New("secret_files is missing; name a file in the folder of secrets with " +
			"whsec_ and at least 24 random bytes in base64")
	}
	for _, name := range files {
		raw, err := secrets.Read(name)
		if err != nil {
			return err
		}
		text, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), secretPrefix)
		secret, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil || len(secret) < 24 || len(secret) > 64 {
			return fmt.Errorf("%s is not a secret: write whsec_ and 24 to 64 random bytes in base64",
				name)
		}
		w.Secrets = append(w.Secrets, secret)
	}
	return nil
}
