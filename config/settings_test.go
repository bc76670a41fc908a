package config_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/selector"
)

// environment unsets all other variables with the prefix. The environment belongs to the process,
// so tests that use it cannot run in parallel.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "DISPATCHER_") {
			t.Setenv(name, value) // restores it afterwards
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv("DISPATCHER_"+name, value)
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	environment(t)
	got, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := config.Settings{
		KafkaGroup: "dispatcher", KafkaCompression: "gzip", StatusTopic: "sms.status",
		DeadTopic: "sms.dead", InboundTopic: "sms.inbound",
		PostgresMaxConns: 8, DataDir: "./data", Listen: "127.0.0.1:8080",
		OIDCRolesClaim: "roles", OIDCNameClaim: "sub", APIRate: 20,
		OIDCScopes:     []string{"openid", "profile", "email"},
		ReceiptsListen: "127.0.0.1:8081",
		Region:         "default", MaxUnsettled: 2000, Batch: 500, SendTimeout: 10 * time.Second,
		ShutdownTimeout: 30 * time.Second, DeadAfter: 6 * time.Second,
		StateInterval: 2 * time.Second, WindowRetention: 168 * time.Hour, LogLevel: "info",
		IDRetention: 168 * time.Hour, PayloadRetention: 168 * time.Hour,
		LedgerRetention: 400 * 24 * time.Hour, InvariantsInterval: 10 * time.Minute,
		ReportsFiles: []string{"csv", "html"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(true); err != nil {
		t.Errorf("the defaults are not valid in embedded mode: %v", err)
	}
}

func TestEverySettingIsReadFromItsVariable(t *testing.T) {
	secret := write(t, " s3cret \n")
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	authority := write(t,
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	environment(t, "KAFKA_BROKERS=k1:9092, k2:9092", "KAFKA_GROUP=g", "KAFKA_TLS=true",
		"KAFKA_CA_FILE="+authority,
		"KAFKA_SASL_MECHANISM=SCRAM-SHA-256", "KAFKA_SASL_USER=u", "KAFKA_SASL_PASSWORD_FILE="+secret,
		"KAFKA_COMPRESSION=zstd", "STATUS_TOPIC=s", "DEAD_TOPIC=d", "INBOUND_TOPIC=i", "CONTROL_TOPIC=c",
		"DEFAULT_REGION=gb", "ALLOW_UNKNOWN_FIELDS=true",
		"POSTGRES_URL=postgres://u:p@h/d", "POSTGRES_MAX_CONNS=3", "ROUTING_FILE=r.yaml",
		"SEAL_KEY_FILE=seal.key", "DRAW_KEY_FILE=draw.key", "SECRETS_DIR=secrets.d",
		"DATA_DIR=/var/d", "LISTEN=:1", "RECEIPTS_LISTEN=:2", "PUBLIC_URL=https://sms.example.com",
		"REGION=San Jose",
		"RECEIPTS_TLS_CERT_FILE=c.pem", "RECEIPTS_TLS_KEY_FILE=k.pem",
		"RECEIPTS_TLS_CLIENT_CA_FILE=a.pem",
		"MAX_UNSETTLED=7", "BATCH=9", "SEND_TIMEOUT=3s", "SHUTDOWN_TIMEOUT=4s", "DEAD_AFTER=5s",
		"STATE_INTERVAL=3s", "WINDOW_RETENTION=24h", "LOG_LEVEL=debug", "LOG_FORMAT=json",
		"ID_RETENTION=25h", "PAYLOAD_RETENTION=26h", "LEDGER_RETENTION=27h",
		"INVARIANTS_INTERVAL=28m", "REPORTS_URL=/srv/reports", "REPORTS_FILES=csv,parquet", "API_TOKENS_FILE=tokens",
		"OIDC_ISSUER=https://login.example.com", "OIDC_AUDIENCE=sms", "OIDC_ROLES_CLAIM=groups",
		"OIDC_ROLE_MAP=urn:sms:operator,staff:viewer,shop:sender", "OIDC_NAME_CLAIM=email",
		"OIDC_TENANT_CLAIM=org", "API_INTAKE=true", "API_RATE=500", "OIDC_CLIENT_ID=console",
		"OIDC_CLIENT_SECRET_FILE="+secret, "OIDC_SCOPES=openid,groups",
		"STATUS_WEBHOOKS_FILE=/etc/dispatcher/webhooks.yaml")
	got, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := config.Settings{
		KafkaBrokers: []string{"k1:9092", "k2:9092"}, KafkaGroup: "g", KafkaTLS: true,
		KafkaCAFile: authority, KafkaCA: trusted,
		KafkaSASLMechanism: "SCRAM-SHA-256", KafkaSASLUser: "u", KafkaSASLPasswordFile: secret,
		KafkaSASLPassword: "s3cret",
		KafkaCompression:  "zstd", StatusTopic: "s", DeadTopic: "d", InboundTopic: "i", ControlTopic: "c",
		DefaultRegion: "gb", AllowUnknownFields: true,
		PostgresURL: "postgres://u:p@h/d", PostgresMaxConns: 3, RoutingFile: "r.yaml",
		SealKeyFile: "seal.key", DrawKeyFile: "draw.key", SecretsDir: "secrets.d",
		DataDir: "/var/d", Listen: ":1", ReceiptsListen: ":2", PublicURL: "https://sms.example.com",
		Region:              "San Jose",
		ReceiptsTLSCertFile: "c.pem", ReceiptsTLSKeyFile: "k.pem", ReceiptsTLSClientCAFile: "a.pem",
		MaxUnsettled: 7, Batch: 9, SendTimeout: 3 * time.Second, ShutdownTimeout: 4 * time.Second,
		DeadAfter: 5 * time.Second, StateInterval: 3 * time.Second, WindowRetention: 24 * time.Hour,
		LogLevel: "debug", LogFormat: "json",
		IDRetention: 25 * time.Hour, PayloadRetention: 26 * time.Hour,
		LedgerRetention: 27 * time.Hour, InvariantsInterval: 28 * time.Minute,
		ReportsURL: "/srv/reports", ReportsFiles: []string{"csv", "parquet"}, APITokensFile: "tokens",
		OIDCIssuer: "https://login.example.com", OIDCAudience: "sms", OIDCRolesClaim: "groups",
		OIDCRoleMap: []string{"urn:sms:operator", "staff:viewer", "shop:sender"}, OIDCNameClaim: "email",
		OIDCTenantClaim: "org", APIIntake: true, APIRate: 500, OIDCClientID: "console",
		OIDCClientSecretFile: secret, OIDCScopes: []string{"openid", "groups"},
		StatusWebhooksFile: "/etc/dispatcher/webhooks.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(false); err != nil {
		t.Errorf("Validate: %v", err)
	}
	roles, err := got.OIDCRoles()
	if diff := cmp.Diff(map[string]string{
		"urn:sms": "operator", "staff": "viewer", "shop": "sender",
	},
		roles); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, s := range got.List() {
		if s.Source != "environment" || s.Help == "" || strings.Contains(s.Value, "s3cret") ||
			strings.Contains(s.Value, ":p@") {
			t.Errorf("listed as %+v", s)
		}
	}
}

func TestUnprefixedVariablesAreNotRead(t *testing.T) {
	environment(t)
	t.Setenv("LISTEN", ":1")
	t.Setenv("REGION", "elsewhere")
	t.Setenv("KAFKA_BROKERS", "k:1")
	s, err := config.Load()
	if err != nil || s.Listen != "127.0.0.1:8080" || s.Region != "default" || s.KafkaBrokers != nil {
		t.Errorf("read %+v, %v", s, err)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	folder := t.TempDir()
	empty := write(t, "\n")
	for _, c := range []struct{ name, pair, want string }{
		{
			"misspelt", "KAFKA_BROKER=x",
			"DISPATCHER_KAFKA_BROKER is not a setting; did you mean DISPATCHER_KAFKA_BROKERS?",
		},
		{
			"unknown", "COLOUR_OF_THE_CONSOLE_BACKGROUND=x",
			`DISPATCHER_COLOUR_OF_THE_CONSOLE_BACKGROUND is not a setting; unset it ("dispatcher config" lists all settings)`,
		},
		{
			"internal field", "KAFKA_SASL_PASSWORD=x",
			"DISPATCHER_KAFKA_SASL_PASSWORD is not a setting; did you mean " +
				"DISPATCHER_KAFKA_SASL_PASSWORD_FILE?",
		},
		{"set to nothing", "BATCH=", "DISPATCHER_BATCH is set to nothing; unset it for the default 500"},
		{"number", "BATCH=many", "DISPATCHER_BATCH cannot be read; write a whole number such as 500"},
		{"bool", "KAFKA_TLS=ja", "DISPATCHER_KAFKA_TLS cannot be read; write true or false"},
		{
			"duration", "SEND_TIMEOUT=10",
			"DISPATCHER_SEND_TIMEOUT cannot be read; write a duration such as 10s or 2m",
		},
		{
			"no file", "KAFKA_SASL_PASSWORD_FILE=" + missing,
			"DISPATCHER_KAFKA_SASL_PASSWORD_FILE: there is no file " + missing +
				"; create it or correct the path",
		},
		{
			"folder", "KAFKA_SASL_PASSWORD_FILE=" + folder,
			"DISPATCHER_KAFKA_SASL_PASSWORD_FILE: " + folder + " is a folder; name the file in it",
		},
		{
			"empty secret of the client", "OIDC_CLIENT_SECRET_FILE=" + empty,
			"DISPATCHER_OIDC_CLIENT_SECRET_FILE: file " + empty + " is empty; write the password into it",
		},
		{
			"no certificate", "KAFKA_CA_FILE=" + empty,
			"DISPATCHER_KAFKA_CA_FILE: file " + empty +
				" holds no certificate in PEM form; write one into it",
		},
		{
			"empty file", "KAFKA_SASL_PASSWORD_FILE=" + empty,
			"DISPATCHER_KAFKA_SASL_PASSWORD_FILE: file " + empty + " is empty; write the password into it",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.pair)
			if _, err := config.Load(); err == nil || err.Error() != c.want {
				t.Errorf("Load: %v\nwant  %s", err, c.want)
			}
		})
	}
}

// valid returns settings without a problem.
func valid() config.Settings {
	return config.Settings{
		KafkaBrokers: []string{"k:9092"}, KafkaGroup: "g", KafkaCompression: "none", StatusTopic: "s",
		DeadTopic: "d", InboundTopic: "i",
		PostgresURL: "postgres://h/d", PostgresMaxConns: 4, APIRate: 20, DrawKeyFile: "k", DataDir: "d", Listen: ":1",
		ReceiptsListen: ":2",
		Region:         "r", MaxUnsettled: 1, Batch: 1, SendTimeout: time.Second,
		ShutdownTimeout: time.Second, DeadAfter: 3 * time.Second,
		StateInterval: time.Second, WindowRetention: time.Hour, LogLevel: "info",
		IDRetention: 24 * time.Hour, PayloadRetention: 24 * time.Hour,
		LedgerRetention: 24 * time.Hour,
	}
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bend func(*config.Settings)
		want string
	}{
		{
			"brokers", func(s *config.Settings) {
				s.KafkaBrokers = nil
			},
			"DISPATCHER_KAFKA_BROKERS is missing; set it to a list such as kafka-1:9092,kafka-2:9092, or " +
				"run with --embedded",
		},
		{
			"database", func(s *config.Settings) {
				s.PostgresURL = " "
			},
			"DISPATCHER_POSTGRES_URL is missing; set it to a URL such as " +
				"postgres://user@host:5432/database, or run with --embedded",
		},
		{
			"draw key", func(s *config.Settings) {
				s.DrawKeyFile = ""
			},
			`DISPATCHER_DRAW_KEY_FILE is missing; write a key with "dispatcher keys new draw.key" and set it to that file, or run with --embedded`,
		},
		{
			"broker without port", func(s *config.Settings) {
				s.KafkaBrokers = []string{"k"}
			}, "DISPATCHER_KAFKA_BROKERS is not host:port; write for example kafka-1:9092",
		},
		{
			"broker as URL", func(s *config.Settings) {
				s.KafkaBrokers = []string{"u:secret@k:9092"}
			}, "DISPATCHER_KAFKA_BROKERS is not host:port; write for example kafka-1:9092",
		},
		{
			"reports", func(s *config.Settings) {
				s.ReportsFiles = []string{"csv", "pdf"}
			}, `DISPATCHER_REPORTS_FILES "pdf" is none of json, csv, xlsx, parquet, html`,
		},
		{
			"topic", func(s *config.Settings) {
				s.DeadTopic = "a b"
			},
			`DISPATCHER_DEAD_TOPIC "a b" has characters besides letters, digits, dot, dash and underscore; choose another name`,
		},
		{
			"topic twice", func(s *config.Settings) {
				s.DeadTopic = "s"
			}, "DISPATCHER_DEAD_TOPIC is s, which another setting uses too; give each its own topic",
		},
		{
			"mechanism", func(s *config.Settings) {
				s.KafkaSASLUser = "u"
			},
			"DISPATCHER_KAFKA_SASL_MECHANISM is missing while a user or a password is set; set it to one " +
				"of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
		},
		{"unknown mechanism", func(s *config.Settings) {
			s.KafkaSASLMechanism, s.KafkaSASLUser, s.KafkaSASLPasswordFile = "GSSAPI", "u", "f"
		}, `DISPATCHER_KAFKA_SASL_MECHANISM "GSSAPI" is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512`},
		{
			"password", func(s *config.Settings) {
				s.KafkaSASLMechanism, s.KafkaSASLUser = "PLAIN", "u"
			}, "DISPATCHER_KAFKA_SASL_PASSWORD_FILE is missing; SASL needs a file that holds the password",
		},
		{
			"authority", func(s *config.Settings) {
				s.KafkaCAFile = "f"
			},
			"DISPATCHER_KAFKA_CA_FILE is set while KAFKA_TLS is false; set DISPATCHER_KAFKA_TLS=true " +
				"or unset it",
		},
		{
			"compression", func(s *config.Settings) {
				s.KafkaCompression = "LZ4"
			}, `DISPATCHER_KAFKA_COMPRESSION "LZ4" is none of none, gzip, snappy, lz4, zstd`,
		},
		{
			"port", func(s *config.Settings) {
				s.Listen = ":99999"
			}, "DISPATCHER_LISTEN is not host:port; write for example 127.0.0.1:8080",
		},
		{
			"same address", func(s *config.Settings) {
				s.ReceiptsListen = s.Listen
			},
			"DISPATCHER_RECEIPTS_LISTEN is the same as DISPATCHER_LISTEN; providers must not reach the " +
				"console, so give it another port",
		},
		{
			"public URL", func(s *config.Settings) {
				s.PublicURL = "sms.example.com"
			},
			"DISPATCHER_PUBLIC_URL is not an http or https URL; write for example https://sms.example.com",
		},
		{
			"public URL with a query", func(s *config.Settings) {
				s.PublicURL = "https://h/?a=b"
			},
			"DISPATCHER_PUBLIC_URL has a query or a fragment; /receipts/ and the name of a channel are " +
				"put behind it, so write for example https://sms.example.com",
		},
		{
			"webhooks' key", func(s *config.Settings) {
				s.ReceiptsTLSCertFile = "c"
			},
			"DISPATCHER_RECEIPTS_TLS_CERT_FILE and DISPATCHER_RECEIPTS_TLS_KEY_FILE belong together; set " +
				"both or none",
		},
		{
			"audience", func(s *config.Settings) { s.OIDCIssuer = "https://login.example.com" },
			"DISPATCHER_OIDC_ISSUER and DISPATCHER_OIDC_AUDIENCE belong together; set both or none",
		},
		{
			"intake for nobody", func(s *config.Settings) { s.APIIntake = true },
			"DISPATCHER_API_INTAKE is true while nobody may use the API; set " +
				"DISPATCHER_API_TOKENS_FILE or DISPATCHER_OIDC_ISSUER, or unset it",
		},
		{
			"map of roles", func(s *config.Settings) { s.OIDCRoleMap = []string{"staff:boss"} },
			"DISPATCHER_OIDC_ROLE_MAP is not a list of value:role; write for example " +
				"sms-team:operator,sms-billing:finance, with one of the roles viewer, operator, " +
				"finance, sender, admin",
		},
		{
			"client without issuer", func(s *config.Settings) {
				s.OIDCClientID, s.OIDCScopes = "console", []string{"openid"}
			},
			"DISPATCHER_OIDC_CLIENT_ID is set without an issuer; set DISPATCHER_OIDC_ISSUER and " +
				"DISPATCHER_OIDC_AUDIENCE, or unset it",
		},
		{
			"secret without client", func(s *config.Settings) { s.OIDCClientSecretFile = "s" },
			"DISPATCHER_OIDC_CLIENT_SECRET_FILE is set without a client; set " +
				"DISPATCHER_OIDC_CLIENT_ID, or unset it",
		},
		{
			"scopes", func(s *config.Settings) {
				s.OIDCIssuer, s.OIDCAudience = "https://login.example.com", "sms"
				s.OIDCClientID, s.OIDCScopes = "console", []string{"email"}
			},
			"DISPATCHER_OIDC_SCOPES has no openid, so the issuer would not say who signs in; write " +
				"for example openid,profile,email",
		},
		{
			"webhooks' authority", func(s *config.Settings) {
				s.ReceiptsTLSClientCAFile = "a"
			},
			"DISPATCHER_RECEIPTS_TLS_CLIENT_CA_FILE is set while the webhooks have no certificate; set " +
				"DISPATCHER_RECEIPTS_TLS_CERT_FILE and DISPATCHER_RECEIPTS_TLS_KEY_FILE or unset it",
		},
		{
			"region", func(s *config.Settings) {
				s.Region = "a\nb"
			}, "DISPATCHER_REGION is not 1 to 64 printable characters; write for example eu-west-1",
		},
		{
			"default region of another name", func(s *config.Settings) {
				s.DefaultRegion = "UK"
			}, `DISPATCHER_DEFAULT_REGION "UK" is not a country; did you mean GB?`,
		},
		{
			"default region of nobody", func(s *config.Settings) {
				s.DefaultRegion = "XX"
			}, `DISPATCHER_DEFAULT_REGION "XX" is not a country; write its two letters, such as GB`,
		},
		{
			"default region", func(s *config.Settings) {
				s.DefaultRegion = "Britain"
			}, `DISPATCHER_DEFAULT_REGION "Britain" is not a country; write its two letters, such as GB`,
		},
		{
			"batch", func(s *config.Settings) {
				s.Batch = 0
			}, "DISPATCHER_BATCH is 0; choose a number from 1 to 5000",
		},
		{
			"send timeout", func(s *config.Settings) {
				s.SendTimeout = 0
			}, "DISPATCHER_SEND_TIMEOUT is 0s; choose a duration from 100ms to 10m0s",
		},
		{
			"state interval", func(s *config.Settings) {
				s.StateInterval = 0
			}, "DISPATCHER_STATE_INTERVAL is 0s; choose a duration from 100ms to 1m0s",
		},
		{
			"window retention", func(s *config.Settings) {
				s.WindowRetention = time.Minute
			}, "DISPATCHER_WINDOW_RETENTION is 1m0s; choose a duration from 1h0m0s to 87600h0m0s",
		},
		{
			"id retention", func(s *config.Settings) {
				s.IDRetention = 23 * time.Hour
			}, "DISPATCHER_ID_RETENTION is 23h0m0s; choose a duration from 24h0m0s to 87600h0m0s",
		},
		{
			"payloads longer than their day", func(s *config.Settings) {
				s.PayloadRetention = 25 * time.Hour
			},
			"DISPATCHER_PAYLOAD_RETENTION is 25h0m0s, longer than DISPATCHER_LEDGER_RETENTION " +
				"(24h0m0s), which drops the whole day; lower it or raise that",
		},
		{
			"ids longer than their messages", func(s *config.Settings) {
				s.IDRetention = 25 * time.Hour
			},
			"DISPATCHER_ID_RETENTION is 25h0m0s, longer than DISPATCHER_LEDGER_RETENTION " +
				"(24h0m0s), which drops the whole day; lower it or raise that",
		},
		{
			"ledger retention", func(s *config.Settings) {
				s.LedgerRetention = time.Hour
			},
			"DISPATCHER_LEDGER_RETENTION is 1h0m0s; choose a duration from 24h0m0s to 175200h0m0s",
		},
		{
			"dead after two heartbeats", func(s *config.Settings) {
				s.DeadAfter = 2 * time.Second
			}, "DISPATCHER_DEAD_AFTER is 2s; choose a duration from 3s to 1h0m0s",
		},
		{
			"dead before the state", func(s *config.Settings) {
				s.StateInterval = s.DeadAfter
			},
			"DISPATCHER_DEAD_AFTER is 3s, not above DISPATCHER_STATE_INTERVAL (3s); raise it or gather " +
				"the state more often",
		},
		{
			"log level", func(s *config.Settings) {
				s.LogLevel = "loud"
			}, `DISPATCHER_LOG_LEVEL "loud" is none of trace, debug, info, warn, error`,
		},
		{
			"log format", func(s *config.Settings) {
				s.LogFormat = "xml"
			}, `DISPATCHER_LOG_FORMAT "xml" is none of json, console`,
		},
		{
			"two at once", func(s *config.Settings) {
				s.Batch, s.LogFormat = -1, "xml"
			},
			"DISPATCHER_BATCH is -1; choose a number from 1 to 5000\n" +
				"DISPATCHER_LOG_FORMAT \"xml\" is none of json, console",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := valid()
			c.bend(&s)
			if err := s.Validate(false); err == nil || err.Error() != c.want {
				t.Errorf("Validate: %v\nwant      %s", err, c.want)
			}
		})
	}
	s := valid()
	if err := s.Validate(false); err != nil {
		t.Errorf("valid settings: %v", err)
	}
}

func TestListNamesTheSource(t *testing.T) {
	environment(t, "BATCH=7", "KAFKA_GROUP=dispatcher")
	s, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]config.Setting{}
	for _, l := range s.List() {
		got[strings.TrimPrefix(l.Name, "DISPATCHER_")] = l
	}
	for name, want := range map[string][2]string{
		"BATCH": {"7", "environment"}, "KAFKA_GROUP": {"dispatcher", "environment"},
		"MAX_UNSETTLED": {"2000", "default"}, "SEND_TIMEOUT": {"10s", "default"},
		"POSTGRES_URL": {"", "unset"},
	} {
		if l := got[name]; l.Value != want[0] || l.Source != want[1] {
			t.Errorf("%s is listed as %q from %s, want %q from %s", name, l.Value, l.Source, want[0],
				want[1])
		}
	}
}

func TestRedactConnectionHidesEveryPassword(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"postgres://u@h:5432/d":    "postgres://u@h:5432/d",
		"postgres://u:hunter2@h/d": "postgres://u:***@h/d",
		"postgres://u:hunter2@h/d?sslmode=require":        "postgres://u:***@h/d?sslmode=require",
		"postgres://h/d?password=hunter2&user=u":          "postgres://h/d?password=***&user=u",
		"postgres://h/d?sslpassword=hunter2":              "postgres://h/d?sslpassword=***",
		"postgres://u:hunter2%zz@h/d":                     "***",
		"host=h user=u password=hunter2 dbname=d":         "host=h user=u password=*** dbname=d",
		"host=h PASSWORD = 'hun ter2\\'hunter2' dbname=d": "host=h PASSWORD = *** dbname=d",
		"password=hunter2":                                "password=***",
		"password='hunter2":                               "password=***",
		"password=hun\\ ter2 host=h":                      "password=*** host=h",
		"sslpassword=hunter2 host=h":                      "sslpassword=*** host=h",
	} {
		if got := config.RedactConnection(in); got != want {
			t.Errorf("RedactConnection(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDrawKeysAreReadNewestFirst(t *testing.T) {
	t.Parallel()
	older := strings.Repeat("ab", 32)
	text := "\n" + config.NewDrawKey() + "  \n# kept for last month\n" + strings.ToUpper(older) +
		"  \r\n"
	keys, err := config.DrawKeys(write(t, text))
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	want, err := selector.ParseKey(older)
	if err != nil {
		t.Fatal(err)
	}
	if keys[1] != want || keys[0] == want {
		t.Error("the keys are not in the order of the file")
	}
	if one, other := config.NewDrawKey(), config.NewDrawKey(); one == other {
		t.Error("two new keys are the same")
	}
}

func TestDrawKeysSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("ab", 32)
	for _, c := range []struct{ name, text, want string }{
		{
			"empty", "# none\n",
			`draw.key: there is no key in it; remove the file and make one with "dispatcher keys new draw.key"`,
		},
		{
			"short", good + "\n" + good[:62],
			`draw.key:2: a draw key is 64 hexadecimal digits; "dispatcher keys new" makes one in a new file`,
		},
		{
			"no digits", "\n" + strings.Repeat("x", 64),
			`draw.key:2: a draw key is 64 hexadecimal digits; "dispatcher keys new" makes one in a new file`,
		},
		{
			"zeros", strings.Repeat("0", 64),
			`draw.key:1: a draw key of zeros is not a secret; "dispatcher keys new" makes one in a new file`,
		},
		{
			"twice", good + "\n\n" + good,
			"draw.key:3: the key of line 1 is listed again; remove one of the two",
		},
		{
			"endless line", strings.Repeat("a", 1<<17),
			"draw.key: a line is too long to be a key; write one key of 64 hexadecimal digits a line",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := config.ParseDrawKeys("draw.key", c.text); err == nil || err.Error() != c.want {
				t.Errorf("ParseDrawKeys: %v\nwant            %s", err, c.want)
			}
		})
	}
	if _, err := config.DrawKeys("/none/draw.key"); err == nil ||
		err.Error() !=
			"DISPATCHER_DRAW_KEY_FILE: there is no file /none/draw.key; create it or correct the path" {
		t.Errorf("DrawKeys: %v", err)
	}
}
