package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// Prefix is the prefix of every variable.
const Prefix = "DISPATCHER"

// Settings are the settings of one process, from its environment. The tags hold names, defaults and
// help; the variable of KafkaBrokers is DISPATCHER_KAFKA_BROKERS. Variables without the prefix are
// never read.
type Settings struct {
	KafkaBrokers          []string `split_words:"true" desc:"comma-separated list of host:port; required unless --embedded"`
	KafkaGroup            string   `split_words:"true" default:"dispatcher" desc:"prefix of the consumer groups, one for each lane: dispatcher.otp"`
	KafkaTLS              bool     `split_words:"true" default:"false" desc:"encrypt the connections to the brokers"`
	KafkaCAFile           string   `split_words:"true" desc:"PEM file of the authority that signed the brokers' certificates; the system's own if unset"`
	KafkaSASLMechanism    string   `split_words:"true" desc:"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; no SASL if unset"`
	KafkaSASLUser         string   `split_words:"true" desc:"user for SASL"`
	KafkaSASLPasswordFile string   `split_words:"true" desc:"file with the password for SASL; white space around it is dropped"`
	KafkaCompression      string   `split_words:"true" default:"gzip" desc:"compression of published records: none, gzip, snappy, lz4 or zstd"`
	StatusTopic           string   `split_words:"true" default:"sms.status" desc:"topic of state changes"`
	DeadTopic             string   `split_words:"true" default:"sms.dead" desc:"topic of dead letters: records that could not be used"`
	InboundTopic          string   `split_words:"true" default:"sms.inbound" desc:"topic of messages that subscribers send"`
	ControlTopic          string   `split_words:"true" desc:"topic of records that cancel messages, such as sms.control; none is read if unset"`
	DefaultRegion         string   `split_words:"true" desc:"country, such as GB, of numbers without a country code, the same on all instances; such numbers are refused if unset"`
	AllowUnknownFields    bool     `split_words:"true" default:"false" desc:"accept envelopes with unknown fields"`

	PostgresURL      string `split_words:"true" secret:"connection" desc:"libpq URL or key=value string; required unless --embedded"`
	PostgresMaxConns int    `split_words:"true" default:"8" desc:"connections of one process for claims and settlements, at most; up to eight more serve all else"`

	RoutingFile string `split_words:"true" desc:"routing document that becomes version 1 if the database has none"`
	SealKeyFile string `split_words:"true" desc:"file with the key that signs the log of hashes of what is stored, and the verifier keys of older ones; without it nothing is sealed"`
	DrawKeyFile string `split_words:"true" desc:"file with the draw keys, 64 hexadecimal digits a line, the current key first; required unless --embedded"`
	DataDir     string `split_words:"true" default:"./data" desc:"folder of the embedded servers and their keys"`
	SecretsDir  string `split_words:"true" desc:"the only folder from which files named in the routing document, such as password_file, are read; DISPATCHER_DATA_DIR/secrets if unset"`

	Listen string `split_words:"true" default:"127.0.0.1:8080" desc:"address of metrics, health, profiles, the API and the console"`

	APITokensFile  string   `split_words:"true" desc:"file with the users of the API and the console, one per line: name, role, hash of the token and, for a sender, the tenant; see dispatcher tokens"`
	OIDCIssuer     string   `split_words:"true" desc:"URL of the OpenID Connect issuer whose tokens the API and the console accept"`
	OIDCAudience   string   `split_words:"true" desc:"audience that tokens of the issuer must be made for; required with an issuer"`
	OIDCRolesClaim string   `split_words:"true" default:"roles" desc:"claim of a token with the roles, a text or a list; a dot leads into an object, such as realm_access.roles"`
	OIDCRoleMap    []string `split_words:"true" desc:"list of value:role for that claim, such as sms-team:operator; the values are the names of the roles if unset"`
	OIDCNameClaim  string   `split_words:"true" default:"sub" desc:"claim with the name that the history shows as the author, such as email, which must be verified"`

	OIDCTenantClaim string `split_words:"true" desc:"claim with the tenant that a sender may send for; tokens of senders without it are refused; senders may send for all tenants if unset"`
	// Signing in to the console at the issuer.
	OIDCClientID         string   `split_words:"true" desc:"id of the console at the issuer, where people then sign in by the authorization code flow with PKCE; if unset, they paste a token"`
	OIDCClientSecretFile string   `split_words:"true" desc:"file with the secret of that client, read at each sign-in; white space around it is dropped; a public client if unset"`
	OIDCScopes           []string `split_words:"true" default:"openid,profile,email" desc:"scopes that signing in at the issuer asks for; openid is one of them"`

	APIIntake bool `split_words:"true" default:"false" desc:"accept messages at POST /api/v1/messages from senders, and write them to the topics of their lanes"`
	APIRate   int  `split_words:"true" default:"20" desc:"requests a second that each user of API and console has at each instance; five times as many at once"`

	StatusWebhooksFile string `split_words:"true" desc:"YAML file with the addresses of services that status events are sent to, by tenant; see docs/status-webhooks.md"`

	ReceiptsListen string `split_words:"true" default:"127.0.0.1:8081" desc:"address of the webhooks that providers call"`
	PublicURL      string `split_words:"true" desc:"URL under which providers reach the webhooks; no provider is asked for receipts by webhook if unset"`
	// The webhooks' TLS, as package receive reads it.
	ReceiptsTLSCertFile     string `split_words:"true" desc:"PEM file with the certificate of the webhooks, read again within a minute of a change; plain HTTP if unset"`
	ReceiptsTLSKeyFile      string `split_words:"true" desc:"PEM file with the key of that certificate"`
	ReceiptsTLSClientCAFile string `split_words:"true" desc:"PEM file of the authority that signs client certificates of providers"`
	Region                  string `split_words:"true" default:"default" desc:"region of this instance"`

	MaxUnsettled    int           `split_words:"true" default:"2000" desc:"most messages in flight in one process; if it is killed, this many can become unknown"`
	Batch           int           `split_words:"true" default:"500" desc:"most new messages in one claim, which takes no more than about a quarter of DISPATCHER_MAX_UNSETTLED"`
	SendTimeout     time.Duration `split_words:"true" default:"10s" desc:"how long a submit waits for its answer before it is unknown"`
	ShutdownTimeout time.Duration `split_words:"true" default:"30s" desc:"how long a stop waits for answers"`
	DeadAfter       time.Duration `split_words:"true" default:"6s" desc:"age of the last heartbeat at which an instance counts as dead, at least 3s and above DISPATCHER_STATE_INTERVAL; heartbeats come every second"`
	StateInterval   time.Duration `split_words:"true" default:"2s" desc:"how often the admission policies gather the state of all instances, 100ms to 1m"`
	WindowRetention time.Duration `split_words:"true" default:"168h" desc:"how long limit windows of 1s are kept for audits, 1h to ten years; those of 1m are kept ten times as long, longer ones 400 days"`

	IDRetention      time.Duration `split_words:"true" default:"168h" desc:"how long the id of a message is recognised when it is published again, 24h to ten years; it is forgotten after twice that time"`
	PayloadRetention time.Duration `split_words:"true" default:"168h" desc:"how long numbers and texts are kept after the end of their message, 24h to ten years; they are dropped by day"`
	LedgerRetention  time.Duration `split_words:"true" default:"9600h" desc:"how long everything else is kept after the day of a message, 24h to twenty years, and at least as long as ids and payloads"`

	InvariantsInterval time.Duration `split_words:"true" default:"10m" desc:"how often one instance checks the guarantees on the messages of the last half hour, 1m to 24h; 0 turns it off"`
	ReportsURL         string        `split_words:"true" desc:"where reports of closed days, weeks and months are written: a folder, or an address such as s3://bucket?region=eu-west-2; see report publish"`
	ReportsFiles       []string      `split_words:"true" default:"csv,html" desc:"what is written of each of these reports: some of json, csv, xlsx, parquet and html"`

	LogLevel  string `split_words:"true" default:"info" desc:"trace, debug, info, warn or error"`
	LogFormat string `split_words:"true" desc:"json or console; when empty, console on a terminal and json elsewhere"`

	// KafkaSASLPassword is the content of KafkaSASLPasswordFile without the white
	// space around it.
	KafkaSASLPassword string `ignored:"true"`
	// KafkaCA holds the authorities of KafkaCAFile; nil means those of the system.
	KafkaCA *x509.CertPool `ignored:"true"`
}

// Load reads the settings from the process environment. It refuses an unknown variable with the
// prefix, because a misspelt one would otherwise have no effect without notice, and an empty
// variable where empty has no meaning. It reads the files of secrets, except the draw keys, see
// DrawKeys. Validate checks how the settings fit together.
func Load() (Settings, error) {
	var s Settings
	if err := envconfig.CheckDisallowed(Prefix, &s); err != nil {
		return Settings{}, unknownVariables()
	}
	if err := refuseEmpty(); err != nil {
		return Settings{}, err
	}
	if err := envconfig.Process(Prefix, &s); err != nil {
		return Settings{}, parseError(err)
	}
	for i, b := range s.KafkaBrokers {
		s.KafkaBrokers[i] = strings.TrimSpace(b)
	}
	return s, s.readSecrets()
}

// variable is one setting as its tags describe it.
type variable struct {
	field    int
	name     string // with prefix
	standard string // the default as text
	help     string
	secret   string
}

// variables lists all settings in the order of their fields.
func variables() []variable {
	t := reflect.TypeFor[Settings]()
	names := variableNames()
	out := make([]variable, 0, len(names))
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if tag.Get("ignored") != "" {
			continue
		}
		out = append(out, variable{
			field: i, name: names[len(out)], standard: tag.Get("default"),
			help: tag.Get("desc"), secret: tag.Get("secret"),
		})
	}
	return out
}

// Variable describes a setting: its variable, its default and its meaning.
type Variable struct{ Name, Default, Help string }

// Variables describes every setting in the order of List.
func Variables() []Variable {
	all := variables()
	out := make([]Variable, len(all))
	for i, v := range all {
		out[i] = Variable{Name: v.name, Default: v.standard, Help: v.help}
	}
	return out
}

// variableNames gets the names from the library, which derives them from the fields. They do not
// change while the program runs.
var variableNames = sync.OnceValue(func() []string {
	var out strings.Builder
	if err := envconfig.Usagef(Prefix, &Settings{}, &out,
		"{{range .}}{{usage_key .}}\n{{end}}"); err != nil {
		panic("config: " + err.Error()) // the library cannot read Settings
	}
	return strings.Fields(out.String())
})

// unknownVariables reports every variable with the prefix that is not a setting.
func unknownVariables() error {
	known := variableNames()
	isKnown := make(map[string]bool, len(known))
	for _, name := range known {
		isKnown[name] = true
	}
	var problems []error
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, Prefix+"_") && !isKnown[name] {
			problems = append(problems, fmt.Errorf("%s is not a setting; %s",
				name, suggest(name, known, `unset it ("dispatcher config" lists all settings)`)))
		}
	}
	return errors.Join(problems...)
}

// refuseEmpty reports variables that are set to nothing although they have a default. Without a
// default, empty and unset mean the same.
func refuseEmpty() error {
	var problems []error
	for _, v := range variables() {
		if value, set := os.LookupEnv(v.name); set && strings.TrimSpace(value) == "" &&
			v.standard != "" {
			problems = append(problems, fmt.Errorf("%s is set to nothing; unset it for the "+
				"default %s", v.name, v.standard))
		}
	}
	return errors.Join(problems...)
}

// examples shows a value of each type that has to be parsed.
var examples = map[string]string{
	"bool":          "true or false",
	"int":           "a whole number such as 500",
	"time.Duration": "a duration such as 10s or 2m",
}

// parseError replaces the library's message, which repeats the whole value, by ours.
func parseError(err error) error {
	var parse *envconfig.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	return fmt.Errorf("%s cannot be read; write %s", parse.KeyName, examples[parse.TypeName])
}

// Hidden replaces a secret wherever settings are shown.
const Hidden = "***"

// Setting is one line of the config command.
type Setting struct {
	// Name is the variable with its prefix.
	Name string `json:"name"`
	// Value is what the process uses, with secrets replaced by Hidden.
	Value string `json:"value"`
	// Source is "environment", "default", or "unset" when there is no value at all.
	Source string `json:"source"`
	// Help is the meaning of the setting.
	Help string `json:"help"`
}

// List shows every setting in a fixed order. Sources are those of the process
// environment at the time of the call.
func (s *Settings) List() []Setting {
	fields := reflect.ValueOf(s).Elem()
	all := variables()
	out := make([]Setting, len(all))
	for i, v := range all {
		value := show(fields.Field(v.field))
		if v.secret == "connection" {
			value = RedactConnection(value)
		}
		out[i] = Setting{Name: v.name, Value: value, Source: source(v, value), Help: v.help}
	}
	return out
}

func source(v variable, value string) string {
	if set, ok := os.LookupEnv(v.name); ok && set != "" {
		return "environment"
	}
	if value == "" {
		return "unset"
	}
	return "default"
}

func show(v reflect.Value) string {
	if list, ok := reflect.TypeAssert[[]string](v); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v.Interface())
}

// libpqSecret finds the secrets of a key=value string, quoted or not.
var libpqSecret = regexp.MustCompile(
	`(?i)\b(\w*password)(\s*=\s*)('(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)+)`)

// RedactConnection hides the passwords in a libpq URL or key=value string. A URL that cannot be
// parsed is hidden completely.
func RedactConnection(s string) string {
	if !strings.Contains(s, "://") {
		return libpqSecret.ReplaceAllString(s, "${1}${2}"+Hidden)
	}
	u, err := url.Parse(s)
	if err != nil {
		return Hidden
	}
	query := u.Query()
	for key := range query {
		if strings.HasSuffix(strings.ToLower(key), "password") {
			query.Set(key, Hidden)
		}
	}
	if len(query) > 0 {
		u.RawQuery = query.Encode()
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), Hidden)
	}
	// Escaped stars would only confuse.
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", Hidden)
}
