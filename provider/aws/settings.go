package aws

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// MessageType tells AWS what a message is for. AWS routes and prices messages by it.
type MessageType string

// Types of messages.
const (
	Transactional MessageType = "TRANSACTIONAL"
	Promotional   MessageType = "PROMOTIONAL"
)

// Config is an account at AWS in one region.
type Config struct {
	Region string
	// Credentials sign requests. DefaultCredentials finds them as AWS's own tools do, and
	// InstanceMetadata allows the metadata service of the machine as a source.
	Credentials                          aws.CredentialsProvider
	DefaultCredentials, InstanceMetadata bool
	// From is the origination identity of messages without a sender. If it is empty, AWS chooses
	// one.
	From             string
	ConfigurationSet string
	ProtectID        string
	MessageType      MessageType
	// MaxPrice in US dollars, as AWS writes it. AWS refuses messages that cost more.
	MaxPrice          string
	CountryParameters map[string]string
	// Topics of SNS whose messages are accepted, as ARNs.
	Topics []string
	// Certificates verify SNS signatures. Without one, only Secrets do.
	Certificates []*x509.Certificate
	// Secrets are the valid values of "secret" in the query of the subscribed URL.
	Secrets []string
	// SuccessfulIsDelivered counts TEXT_SUCCESSFUL, which says that the carrier took the message,
	// as delivery.
	SuccessfulIsDelivered bool
	// SNSBase is the address of SNS if not its own.
	SNSBase string
	// Callback is the public URL to subscribe at SNS; empty for none.
	Callback string
	Web      web.Config
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its
// key.
//
//	region                   such as eu-central-1
//	credentials              static (default) or default: environment, shared files, web identity,
//	                         container
//	instance_metadata        true lets credentials: default ask the metadata service of the machine
//	access_key_id, secret_access_key_file, session_token_file   with credentials: static
//	from                     origination identity of messages that name no sender
//	configuration_set        whose event destinations get the events
//	protect_configuration    id of one
//	message_type             transactional (default) or promotional
//	max_price                in US dollars for a message, such as "0.10"
//	country_parameters       {IN_ENTITY_ID: ..., IN_TEMPLATE_ID: ...}
//	successful               pending (default) or delivered: what TEXT_SUCCESSFUL means
//	sns_topics               ARNs of the topics that are accepted
//	sns_certificate_files    PEM files of the certificates that SNS signs with
//	callback_secret_files    file with the secret in the subscribed URL, or a list of two while it is
//	                         rotated
//	sns_base_url             where SNS is reached, when not at its own address
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		Region: r.Text("region"),
		DefaultCredentials: settings.Choose(r, "credentials",
			map[string]bool{"static": false, "default": true}),
		InstanceMetadata: r.Flag("instance_metadata"),
		From:             r.Text("from"),
		ConfigurationSet: r.Text("configuration_set"),
		ProtectID:        r.Text("protect_configuration"),
		MessageType: settings.Choose(r, "message_type", map[string]MessageType{
			"transactional": Transactional, "promotional": Promotional,
		}),
		MaxPrice:          r.Text("max_price"),
		CountryParameters: readParameters(r, "country_parameters"),
		SuccessfulIsDelivered: settings.Choose(r, "successful",
			map[string]bool{"pending": false, "delivered": true}),
		Topics:       r.Texts("sns_topics"),
		Certificates: readCertificates(r, "sns_certificate_files", o.ReadFile),
		Secrets:      web.Secrets(r, "callback_secret_files", o.ReadFile),
		SNSBase:      strings.TrimRight(r.Text("sns_base_url"), "/"),
		Callback:     o.Callback,
	}
	if cfg.MessageType == "" {
		cfg.MessageType = Transactional
	}
	cfg.readKeys(r)
	cfg.check(r)
	cfg.Web = web.ParseConfig(r, "https://sms-voice."+cfg.Region+".amazonaws.com")
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

// readKeys reads static credentials.
func (c *Config) readKeys(r *settings.Reader) {
	id, secret, token := r.Text("access_key_id"), web.Secret(r, "secret_access_key_file"),
		web.Secret(r, "session_token_file")
	if c.DefaultCredentials {
		if id != "" || secret != "" || token != "" {
			r.Failf("access_key_id", "belongs to credentials: static")
		}
		return
	}
	if c.InstanceMetadata {
		r.Failf("instance_metadata", "belongs to credentials: default")
	}
	if id == "" || secret == "" {
		r.Failf("access_key_id",
			"is missing, or its secret_access_key_file is; credentials: default takes them from the "+
				"environment")
	}
	c.Credentials = credentials.NewStaticCredentialsProvider(id, secret, token)
}

var (
	region = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	topic  = regexp.MustCompile(
		`^arn:aws[a-z-]*:sns:([a-z]{2}(?:-[a-z]+)+-[0-9]):[0-9]{12}:[A-Za-z0-9_-]{1,256}$`)
	price = regexp.MustCompile(`^[0-9]{0,2}\.[0-9]{1,5}$`) // as the API has it
)

func (c *Config) check(r *settings.Reader) {
	if !region.MatchString(c.Region) {
		r.Failf("region", "is not a region such as eu-central-1")
	}
	for _, arn := range c.Topics {
		if !topic.MatchString(arn) {
			r.Failf("sns_topics", "%q is not an ARN of a topic", arn)
		}
	}
	if len(c.Certificates) > 0 && len(c.Topics) == 0 {
		r.Failf(
			"sns_topics", "is missing; SNS signs for everybody, and only the topic says whose message it is")
	}
	if c.MaxPrice != "" && !price.MatchString(c.MaxPrice) {
		r.Failf("max_price", "is not a price such as \"0.10\"")
	}
	if c.SNSBase != "" && !strings.HasPrefix(c.SNSBase, "https://") &&
		!strings.HasPrefix(c.SNSBase, "http://") {
		r.Failf("sns_base_url",
			"is not an address such as https://vpce-1234.sns.eu-central-1.vpce.amazonaws.com")
	}
}

// acceptsCallbacks reports whether callbacks can be verified.
func (c *Config) acceptsCallbacks() bool {
	return c.Callback != "" && (len(c.Certificates) > 0 || len(c.Secrets) > 0)
}

func readParameters(r *settings.Reader, key string) map[string]string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	members, ok := settings.Map(value)
	if !ok {
		r.Failf(key, "is not a map")
		return nil
	}
	list := make(map[string]string, len(members))
	for name, member := range members {
		list[name] = fmt.Sprint(member)
	}
	return list
}

func readCertificates(
	r *settings.Reader, key string, readFile func(string) ([]byte, error),
) []*x509.Certificate {
	var list []*x509.Certificate
	for _, path := range r.Texts(key) {
		content, err := readFile(path)
		if err != nil {
			r.Fail(key, err)
			continue
		}
		block, _ := pem.Decode(content)
		if block == nil || block.Type != "CERTIFICATE" {
			r.Failf(key, "%s holds no PEM certificate", path)
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || certificate.PublicKeyAlgorithm != x509.RSA {
			r.Failf(key, "%s holds no certificate of an RSA key", path)
			continue
		}
		list = append(list, certificate)
	}
	return list
}
