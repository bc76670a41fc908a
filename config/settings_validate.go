package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Words that settings accept.
var (
	saslMechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
	compressions   = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	logLevels      = []string{"trace", "debug", "info", "warn", "error"}
	logFormats     = []string{"", "json", "console"}
	reportFiles    = []string{"json", "csv", "xlsx", "parquet", "html"}
)

// Validate reports everything that is wrong with the settings, one sentence a line. In embedded
// mode the process itself makes brokers, database and draw key, so they need not be set.
func (s *Settings) Validate(embedded bool) error {
	var c checker
	if !embedded {
		c.require("KAFKA_BROKERS", strings.Join(s.KafkaBrokers, ""), "set it to a list such as "+
			"kafka-1:9092,kafka-2:9092, or run with --embedded")
		c.require("POSTGRES_URL", s.PostgresURL, "set it to a URL such as "+
			"postgres://user@host:5432/database, or run with --embedded")
		c.require("DRAW_KEY_FILE", s.DrawKeyFile, `write a key with "dispatcher keys new `+
			`draw.key" and set it to that file, or run with --embedded`)
		s.checkIntake(&c)
	}
	s.checkKafka(&c)
	s.checkAddresses(&c)
	s.checkAccess(&c)
	s.checkBounds(&c)
	s.checkSecretsDir(&c)
	c.oneOf("LOG_LEVEL", s.LogLevel, logLevels)
	c.oneOf("LOG_FORMAT", s.LogFormat, logFormats)
	for _, file := range s.ReportsFiles {
		c.oneOf("REPORTS_FILES", file, reportFiles)
	}
	return errors.Join(c.problems...)
}

func (s *Settings) checkKafka(c *checker) {
	for _, b := range s.KafkaBrokers {
		c.address("KAFKA_BROKERS", b, "kafka-1:9092")
	}
	c.require("KAFKA_GROUP", s.KafkaGroup, "unset it for the default dispatcher")
	topics := []string{s.StatusTopic, s.DeadTopic, s.InboundTopic, s.ControlTopic}
	for i, name := range []string{"STATUS_TOPIC", "DEAD_TOPIC", "INBOUND_TOPIC", "CONTROL_TOPIC"} {
		if name == "CONTROL_TOPIC" && topics[i] == "" {
			continue // optional
		}
		if why := topicProblem(topics[i]); why != "" {
			c.fail(name, "%q %s; choose another name", topics[i], why)
		}
		if slices.Index(topics, topics[i]) != i {
			c.fail(name, "is %s, which another setting uses too; give each its own topic",
				topics[i])
		}
	}
	if s.KafkaCAFile != "" && !s.KafkaTLS {
		c.fail("KAFKA_CA_FILE", "is set while KAFKA_TLS is false; set DISPATCHER_KAFKA_TLS=true "+
			"or unset it")
	}
	c.oneOf("KAFKA_COMPRESSION", s.KafkaCompression, compressions)
	s.checkSASL(c)
}

func (s *Settings) checkSASL(c *checker) {
	if s.KafkaSASLMechanism == "" {
		if s.KafkaSASLUser != "" || s.KafkaSASLPasswordFile != "" {
			c.fail("KAFKA_SASL_MECHANISM", "is missing while a user or a password is set; set "+
				"it to one of %s", strings.Join(saslMechanisms, ", "))
		}
		return
	}
	c.oneOf("KAFKA_SASL_MECHANISM", s.KafkaSASLMechanism, saslMechanisms)
	c.require("KAFKA_SASL_USER", s.KafkaSASLUser, "SASL needs a user")
	c.require("KAFKA_SASL_PASSWORD_FILE", s.KafkaSASLPasswordFile, "SASL needs a file that "+
		"holds the password")
}

func (s *Settings) checkAddresses(c *checker) {
	c.address("LISTEN", s.Listen, "127.0.0.1:8080")
	c.address("RECEIPTS_LISTEN", s.ReceiptsListen, "127.0.0.1:8081")
	if _, port, err := net.SplitHostPort(s.Listen); err == nil && port != "0" &&
		s.Listen == s.ReceiptsListen {
		c.fail("RECEIPTS_LISTEN", "is the same as DISPATCHER_LISTEN; providers must not reach "+
			"the console, so give it another port")
	}
	if u, err := url.Parse(s.PublicURL); s.PublicURL != "" && (err != nil || u.Host == "" ||
		(u.Scheme != "http" && u.Scheme != "https") || u.User != nil) {
		c.fail("PUBLIC_URL", "is not an http or https URL; write for example "+
			"https://sms.example.com")
	} else if s.PublicURL != "" && (u.RawQuery != "" || u.ForceQuery || u.Fragment != "") {
		c.fail("PUBLIC_URL", "has a query or a fragment; /receipts/ and the name of a channel "+
			"are put behind it, so write for example https://sms.example.com")
	}
	s.checkReceiptsTLS(c)
	if !isCountry(s.DefaultRegion) && s.DefaultRegion != "" {
		c.fail("DEFAULT_REGION", "%q %s", s.DefaultRegion, notACountry(s.DefaultRegion))
	}
	if !isName(s.Region, true) {
		c.fail("REGION", "is not 1 to 64 printable characters; write for example eu-west-1")
	}
}

// checkIntake is not called in embedded mode, where the process creates a token.
func (s *Settings) checkIntake(c *checker) {
	if s.APIIntake && s.APITokensFile == "" && s.OIDCIssuer == "" {
		c.fail("API_INTAKE", "is true while nobody may use the API; set %s_API_TOKENS_FILE or "+
			"%s_OIDC_ISSUER, or unset it", Prefix, Prefix)
	}
}

func (s *Settings) checkAccess(c *checker) {
	if (s.OIDCIssuer == "") != (s.OIDCAudience == "") {
		c.fail("OIDC_ISSUER", "and %s_OIDC_AUDIENCE belong together; set both or none", Prefix)
	}
	if _, err := s.OIDCRoles(); err != nil {
		c.fail("OIDC_ROLE_MAP", "%v", err)
	}
	if s.OIDCClientID != "" && s.OIDCIssuer == "" {
		c.fail("OIDC_CLIENT_ID", "is set without an issuer; set %s_OIDC_ISSUER and "+
			"%s_OIDC_AUDIENCE, or unset it", Prefix, Prefix)
	}
	if s.OIDCClientSecretFile != "" && s.OIDCClientID == "" {
		c.fail("OIDC_CLIENT_SECRET_FILE", "is set without a client; set %s_OIDC_CLIENT_ID, or "+
			"unset it", Prefix)
	}
	if s.OIDCClientID != "" && !slices.Contains(s.OIDCScopes, "openid") {
		c.fail("OIDC_SCOPES", "has no openid, so the issuer would not say who signs in; write for "+
			"example openid,profile,email")
	}
}

// OIDCRoles is OIDCRoleMap as a map: names of roles by the values of the claim. A value may hold
// colons.
func (s *Settings) OIDCRoles() (map[string]string, error) {
	roles := map[string]string{}
	for _, pair := range s.OIDCRoleMap {
		at := strings.LastIndexByte(pair, ':')
		if at < 1 || !slices.Contains(roleNames, strings.TrimSpace(pair[at+1:])) {
			return nil, errors.New("is not a list of value:role; write for example " +
				"sms-team:operator,sms-billing:finance, with one of the roles " +
				strings.Join(roleNames, ", "))
		}
		roles[strings.TrimSpace(pair[:at])] = strings.TrimSpace(pair[at+1:])
	}
	return roles, nil
}

// roleNames are the roles of the API and the console.
var roleNames = []string{"viewer", "operator", "finance", "sender", "admin"}

func (s *Settings) checkReceiptsTLS(c *checker) {
	if (s.ReceiptsTLSCertFile == "") != (s.ReceiptsTLSKeyFile == "") {
		c.fail("RECEIPTS_TLS_CERT_FILE", "and %s_RECEIPTS_TLS_KEY_FILE belong together; set "+
			"both or none", Prefix)
	}
	if s.ReceiptsTLSClientCAFile != "" && s.ReceiptsTLSCertFile == "" {
		c.fail("RECEIPTS_TLS_CLIENT_CA_FILE", "is set while the webhooks have no certificate; "+
			"set DISPATCHER_RECEIPTS_TLS_CERT_FILE and DISPATCHER_RECEIPTS_TLS_KEY_FILE or "+
			"unset it")
	}
}

func (s *Settings) checkBounds(c *checker) {
	c.between("POSTGRES_MAX_CONNS", s.PostgresMaxConns, 2, 1000)
	c.between("API_RATE", s.APIRate, 1, 1_000_000)
	c.between("MAX_UNSETTLED", s.MaxUnsettled, 1, 100_000)
	c.between("BATCH", s.Batch, 1, 5000)
	c.lasts("SEND_TIMEOUT", s.SendTimeout, 100*time.Millisecond, 10*time.Minute)
	c.lasts("SHUTDOWN_TIMEOUT", s.ShutdownTimeout, time.Second, time.Hour)
	c.lasts("STATE_INTERVAL", s.StateInterval, 100*time.Millisecond, time.Minute)
	c.lasts("WINDOW_RETENTION", s.WindowRetention, time.Hour, 10*365*day)
	if s.InvariantsInterval != 0 {
		c.lasts("INVARIANTS_INTERVAL", s.InvariantsInterval, time.Minute, 24*time.Hour)
	}
	s.checkRetention(c)
	s.checkDeath(c)
	c.require("DATA_DIR", s.DataDir, "unset it for the default ./data")
}

// checkRetention reports a ledger that would drop a day before its ids and payloads.
func (s *Settings) checkRetention(c *checker) {
	const year = 365 * day
	c.lasts("ID_RETENTION", s.IDRetention, day, 10*year)
	c.lasts("PAYLOAD_RETENTION", s.PayloadRetention, day, 10*year)
	c.lasts("LEDGER_RETENTION", s.LedgerRetention, day, 20*year)
	for _, one := range []struct {
		name  string
		value time.Duration
	}{{"ID_RETENTION", s.IDRetention}, {"PAYLOAD_RETENTION", s.PayloadRetention}} {
		if s.LedgerRetention >= day && one.value > s.LedgerRetention {
			c.fail(one.name, "is %s, longer than DISPATCHER_LEDGER_RETENTION (%s), which drops "+
				"the whole day; lower it or raise that", one.value, s.LedgerRetention)
		}
	}
}

// checkSecretsDir refuses folders that contain more than secrets of the routing document. The data
// folder, and so each folder around it, contains the draw key and the password of the embedded
// database; its subfolders contain the database itself. The one exception is its subfolder for
// secrets.
func (s *Settings) checkSecretsDir(c *checker) {
	folder, data := NewSecretsFolder(s.secretsDir()).Path(), NewSecretsFolder(s.DataDir).Path()
	// Not resolved: a link there may lead to the database.
	own := filepath.Join(resolved(data), defaultSecrets)
	switch {
	case resolved(folder) == string(filepath.Separator):
		c.fail("SECRETS_DIR", "is %s, which holds other files too; make a folder for the "+
			"secrets of the routing document alone", folder)
	case isAround(folder, data):
		c.fail("SECRETS_DIR", "is %s, which holds the data folder %s (%s_DATA_DIR) and with it "+
			"secrets of the dispatcher itself; "+
			"make a folder for the secrets of the routing document alone, for example %s",
			folder, data, Prefix, filepath.Join(data, defaultSecrets))
	case isAround(data, folder) && !holds(own, resolved(folder)):
		c.fail("SECRETS_DIR", "is %s, which lies in the data folder %s (%s_DATA_DIR) among "+
			"files of the dispatcher itself; "+
			"in there only %s is for the secrets of the routing document",
			folder, data, Prefix, filepath.Join(data, defaultSecrets))
	}
}

// holds reports whether inner is the folder outer or lies in it, judged by their names alone.
func holds(outer, inner string) bool {
	within, err := filepath.Rel(outer, inner)
	return err == nil && filepath.IsLocal(within)
}

// heartbeat is the interval of an instance's heartbeats.
const heartbeat = time.Second

// checkDeath reports settings under which a living process counts as dead: after one or two late
// heartbeats, or before its state was gathered once.
func (s *Settings) checkDeath(c *checker) {
	c.lasts("DEAD_AFTER", s.DeadAfter, 3*heartbeat, time.Hour)
	if s.DeadAfter >= 3*heartbeat && s.DeadAfter <= s.StateInterval {
		c.fail("DEAD_AFTER", "is %s, not above DISPATCHER_STATE_INTERVAL (%s); raise it or "+
			"gather the state more often", s.DeadAfter, s.StateInterval)
	}
}

// checker collects problems of settings. Names are given without the prefix.
type checker struct{ problems []error }

func (c *checker) fail(name, format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("%s_%s %s", Prefix, name, fmt.Sprintf(format,
		args...)))
}

func (c *checker) require(name, value, advice string) {
	if strings.TrimSpace(value) == "" {
		c.fail(name, "is missing; %s", advice)
	}
}

func (c *checker) oneOf(name, value string, words []string) {
	if !slices.Contains(words, value) {
		c.fail(name, "%q is none of %s", value, strings.Join(slices.DeleteFunc(slices.Clone(words),
			func(w string) bool { return w == "" }), ", "))
	}
}

func (c *checker) between(name string, value, low, high int) {
	if value < low || value > high {
		c.fail(name, "is %d; choose a number from %d to %d", value, low, high)
	}
}

func (c *checker) lasts(name string, value, low, high time.Duration) {
	if value < low || value > high {
		c.fail(name, "is %s; choose a duration from %s to %s", value, low, high)
	}
}

// address accepts host:port with a port from 0 to 65535; the host may be empty. A user part or a
// scheme would make it a URL that might contain a secret, so the value is not shown.
func (c *checker) address(name, value, example string) {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(value, "/@ ") {
		c.fail(name, "is not host:port; write for example %s", example)
	}
}

// topicProblem says why Kafka would refuse a topic name; "" when it would not.
func topicProblem(name string) string {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' ||
			r == '_' || r == '-'
	}
	switch {
	case name == "" || len(name) > 249:
		return "is not 1 to 249 characters long"
	case name == "." || name == "..":
		return "is not a name for a topic"
	case strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }):
		return "has characters besides letters, digits, dot, dash and underscore"
	}
	return ""
}

// isName reports whether s can name a channel, a route, a lane or a region: 1 to 64 letters,
// digits, dots, dashes and underscores. Such names are label values of metrics and parts of paths.
// With printable, every printable character is allowed.
func isName(s string, printable bool) bool {
	if s == "" || len(s) > 64 || strings.TrimSpace(s) != s {
		return false
	}
	for _, r := range s {
		plain := r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
			strings.ContainsRune("._-", r))
		if !plain && (!printable || !unicode.IsPrint(r) || r == unicode.ReplacementChar) {
			return false
		}
	}
	return true
}
