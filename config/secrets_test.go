package config_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dispatcher/config"
)

const (
	folderKey = "5d1c8f0b7a6e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0918273645f0"
	hush      = "hush-4711"
)

// secretsStage is a folder of secrets beside other files of a machine.
type secretsStage struct {
	t                       *testing.T
	secrets, outside, drawn string
	settings                config.Settings
}

func newSecretsStage(t *testing.T) *secretsStage {
	t.Helper()
	top := t.TempDir()
	s := &secretsStage{
		t: t, secrets: filepath.Join(top, "secrets"), outside: filepath.Join(top, "outside"),
		drawn: filepath.Join(top, "draw.key"),
	}
	s.settings = config.Settings{
		SecretsDir: s.secrets, DrawKeyFile: s.drawn, DataDir: filepath.Join(top, "data"),
	}
	for _, folder := range []string{
		s.secrets, s.outside, s.settings.DataDir, filepath.Join(s.secrets, "..2026_11_22"),
		filepath.Join(s.secrets, "sub"),
	} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.write(s.drawn, "# keys\n"+folderKey+"\n")
	s.write(filepath.Join(s.outside, "passwd"), hush)
	s.write(filepath.Join(s.secrets, "plain"), "right\n")
	s.write(filepath.Join(s.secrets, "sub", "deep"), "right\n")
	s.write(filepath.Join(s.secrets, "..2026_11_22", "mounted"), "right\n")
	return s
}

func (s *secretsStage) write(path, content string) {
	s.t.Helper()
	s.check(os.WriteFile(path, []byte(content), 0o600))
}

func (s *secretsStage) link(to, name string) {
	s.t.Helper()
	s.check(os.Symlink(to, filepath.Join(s.secrets, name)))
}

func (s *secretsStage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestFilesOfTheSecretsFolderAreRead(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	s.link("..2026_11_22", "..data") // as Kubernetes mounts a secret
	s.link("..data/mounted", "mounted")
	s.link("plain", "other")
	s.check(os.Symlink(s.secrets, s.secrets+"-link"))
	linked := s.settings
	linked.SecretsDir = s.secrets + "-link"
	for name, folder := range map[string]*config.SecretsFolder{
		"plain": s.settings.Secrets(), "./plain": s.settings.Secrets(), "sub/deep": s.settings.Secrets(),
		"sub/../plain": s.settings.Secrets(),
		"mounted":      s.settings.Secrets(), "other": s.settings.Secrets(),
		filepath.Join(s.secrets, "plain"):               s.settings.Secrets(),
		filepath.Join(s.secrets, "mounted"):             linked.Secrets(),
		filepath.Join(s.secrets+"-link", "sub", "deep"): linked.Secrets(),
	} {
		if content, err := folder.Read(name); err != nil || string(content) != "right\n" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// TestNoFileOutsideOfTheSecretsFolderIsRead under any name. The error says what to do and shows no
// content.
func TestNoFileOutsideOfTheSecretsFolderIsRead(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	s.link("../outside/passwd", "relative")
	s.link(filepath.Join(s.outside, "passwd"), "absolute")
	s.link("../outside", "folder")
	for _, name := range []string{
		"/etc/passwd", "../outside/passwd", "sub/../../outside/passwd", "relative", "absolute",
		"folder/passwd",
		filepath.Join(s.outside, "passwd"), s.secrets + "/../outside/passwd", s.secrets + "x/passwd",
		s.secrets,
	} {
		content, err := s.settings.Secrets().Read(name)
		if err == nil || !strings.Contains(err.Error(), "DISPATCHER_SECRETS_DIR") ||
			!strings.Contains(err.Error(), "put the file") {
			t.Errorf("%s: %q, %v", name, content, err)
		} else if strings.Contains(err.Error(), hush) || content != nil {
			t.Errorf("%s: the content was read: %v", name, err)
		}
	}
	for _, name := range []string{"../x", "sub/../../x"} {
		if _, err := s.settings.Secrets().Read(name); !errors.Is(err, config.ErrOutsideSecrets) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretsOfTheProcessItselfAreNeverRead: neither under another name nor as a copy.
func TestSecretsOfTheProcessItselfAreNeverRead(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	inside := filepath.Join(s.secrets, "inside.key")
	s.write(inside, folderKey+"\n")
	s.settings.DrawKeyFile = inside
	s.check(os.Link(inside, filepath.Join(s.secrets, "hard")))
	s.link("inside.key", "soft")
	s.write(filepath.Join(s.secrets, "copy"), "# a copy\r\n "+strings.ToUpper(folderKey)+"\r\nmore\n")
	s.settings.KafkaSASLPasswordFile = filepath.Join(s.secrets, "kafka")
	s.write(s.settings.KafkaSASLPasswordFile, hush)
	s.settings.ReceiptsTLSKeyFile = filepath.Join(s.secrets, "tls.key")
	s.write(s.settings.ReceiptsTLSKeyFile, hush)
	s.settings.OIDCClientSecretFile = filepath.Join(s.secrets, "oidc")
	s.write(s.settings.OIDCClientSecretFile, hush)
	s.write(filepath.Join(s.secrets, "shop"), "\n whsec_"+hush)
	if content, err := s.settings.Secrets().Read("shop"); err != nil || content == nil {
		t.Errorf("without status webhooks a provider's secret is refused: %v", err)
	}
	s.settings.StatusWebhooksFile = filepath.Join(s.secrets, "webhooks.yaml")
	for name, what := range map[string]string{
		"shop":       "DISPATCHER_STATUS_WEBHOOKS_FILE",
		"oidc":       "DISPATCHER_OIDC_CLIENT_SECRET_FILE",
		"inside.key": "the draw key", "hard": "the draw key", "soft": "the draw key",
		"copy":  "the draw key",
		"kafka": "DISPATCHER_KAFKA_SASL_PASSWORD_FILE", "tls.key": "DISPATCHER_RECEIPTS_TLS_KEY_FILE",
	} {
		content, err := s.settings.Secrets().Read(name)
		if err == nil || !strings.Contains(err.Error(), what) ||
			!strings.Contains(err.Error(), "name another file") {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// TestFilesOfTheDatabaseConnectionAreNeverRead whichever way the connection is configured.
func TestFilesOfTheDatabaseConnectionAreNeverRead(t *testing.T) {
	s := newSecretsStage(t)
	pass, key, service := filepath.Join(s.secrets, "it's pgpass"),
		filepath.Join(s.secrets, "client.key"), filepath.Join(s.secrets, "pg.conf")
	for _, path := range []string{pass, key, service} {
		s.write(path, hush)
	}
	t.Setenv("PGSERVICEFILE", service)
	query := url.Values{"passfile": {pass}, "sslkey": {key}}
	for _, connection := range []string{
		"postgres://u@h/d?" + query.Encode(),
		"host=h passfile='" + strings.ReplaceAll(pass, "'", `\'`) + "' sslkey = " + key,
	} {
		s.settings.PostgresURL = connection
		for _, path := range []string{pass, key, service} {
			content, err := s.settings.Secrets().Read(filepath.Base(path))
			if err == nil || !strings.Contains(err.Error(), "DISPATCHER_POSTGRES_URL") {
				t.Errorf("%s of %s: %q, %v", path, connection, content, err)
			}
		}
	}
}

// TestTheEmbeddedDrawKeyIsNeverRead even if the folder of secrets contains the data folder.
func TestTheEmbeddedDrawKeyIsNeverRead(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	s.settings = config.Settings{DataDir: filepath.Join(s.secrets, "sub"), SecretsDir: s.secrets}
	s.write(filepath.Join(s.secrets, "sub", config.EmbeddedDrawKey), folderKey+"\n")
	s.write(filepath.Join(s.secrets, "sub", config.EmbeddedEndpoints), hush)
	s.write(filepath.Join(s.secrets, "sub", config.EmbeddedToken), hush)
	for _, name := range []string{
		config.EmbeddedDrawKey, config.EmbeddedEndpoints, config.EmbeddedToken,
	} {
		if content, err := s.settings.Secrets().Read("sub/" + name); err == nil ||
			!strings.Contains(err.Error(), "name another file") {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

func TestOnlySmallOrdinaryFilesAreSecrets(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	// nobody writes to it: opening it must not block
	s.check(syscall.Mkfifo(filepath.Join(s.secrets, "pipe"), 0o600))
	s.write(filepath.Join(s.secrets, "huge"), strings.Repeat("x", 64<<10+1))
	s.write(filepath.Join(s.secrets, "largest"), strings.Repeat("x", 64<<10))
	for name, want := range map[string]string{
		"pipe": "not an ordinary file", "huge": "larger than 65536 bytes", "sub": "is a folder",
		"none": "there is no file none",
	} {
		if _, err := s.settings.Secrets().Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if content, err := s.settings.Secrets().Read("largest"); err != nil || len(content) != 64<<10 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// TestTheSecretsFolderHasADefault inside the data folder. If it is missing, the error explains it.
func TestTheSecretsFolderHasADefault(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	s.settings.SecretsDir = ""
	if _, err := s.settings.Secrets().Read("plain"); err == nil ||
		!strings.Contains(err.Error(),
			"there is no secrets folder "+filepath.Join(s.settings.DataDir, "secrets")) {
		t.Error(err)
	}
	s.check(os.Rename(s.secrets, filepath.Join(s.settings.DataDir, "secrets")))
	if content, err := s.settings.Secrets().Read("plain"); err != nil || string(content) != "right\n" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestASecretsFolderHoldsSecretsAlone(t *testing.T) {
	t.Parallel()
	for folder, bad := range map[string]bool{
		"/": true, "./data": true, "./data/secrets": false, "/run/secrets": false, ".": true, "..": true,
		"./database":      false,
		"./data/postgres": true, "./data/secrets/eu": false, "./data/secretsX": true,
		"./data/secrets/../postgres": true,
	} {
		s := config.Settings{DataDir: "./data", SecretsDir: folder}
		if err := s.Validate(true); bad != strings.Contains(err.Error(), "DISPATCHER_SECRETS_DIR is ") {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

// TestNoFolderAroundTheDataFolderHoldsSecrets, whichever path names it: it would give access to the
// draw key and the password of the embedded database.
func TestNoFolderAroundTheDataFolderHoldsSecrets(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, folder := range []string{"app/data/postgres", "app/secrets", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"link": "app", "elsewhere/data": "../app/data", "app/data/secrets": "..", "inner": "app/secrets",
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		secrets, data string
		bad           bool
	}{
		{"app", "app/data", true},
		{"", "app", true}, // the folder that contains both
		{"link", "app/data", true},
		{"app", "link/data", true},
		{"link/data", "app/data", true},
		{"app", "elsewhere/data", true},
		{"app/none", "app/none/data", true},
		{"link/none", "app/none/data", true},
		{"app/data/secrets", "app/data", true}, // a link that leads outside
		{"elsewhere", "elsewhere/data", false}, // the data folder is elsewhere
		{"app/secrets", "app/data", false},
		{"inner", "app/data", false},
		{"app/none/secrets", "app/none", false},
		{"app/dat", "app/data", false},
	} {
		s := config.Settings{
			DataDir: filepath.Join(top, c.data), SecretsDir: filepath.Join(top, c.secrets),
		}
		err := s.Validate(true)
		if got := strings.Contains(err.Error(),
			"which holds the data folder "+s.DataDir+" (DISPATCHER_DATA_DIR)"); got != c.bad {
			t.Errorf("secrets %s, data %s: %v", c.secrets, c.data, err)
		}
	}
	// DISPATCHER_SECRETS_DIR is not set
	linked := config.Settings{DataDir: filepath.Join(top, "app", "data")}
	if err := linked.Validate(true); !strings.Contains(err.Error(), "which holds the data folder") {
		t.Errorf("a default that links to the folder around the data folder: %v", err)
	}
}

// TestInTheDataFolderOneFolderHoldsSecrets: the other folders belong to the embedded servers, and a
// routing document could send their files to a provider.
func TestInTheDataFolderOneFolderHoldsSecrets(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, folder := range []string{
		"data/postgres/base", "data/secrets/eu", "linked/postgres", "out/postgres", "vault",
	} {
		if err := os.MkdirAll(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"base": "data/postgres/base", "other": "data", "linked/secrets": "postgres",
		"out/secrets": "../vault",
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		secrets, data string
		bad           bool
	}{
		{"data/postgres", "data", true},
		{"data/postgres/base", "data", true},
		{"base", "data", true},
		{"other/postgres", "data", true},
		{"data/postgres", "other", true},
		{"data/kafka", "data", true}, // it does not exist yet
		{"linked/secrets", "linked", true},
		{"data/secrets", "data", false},
		{"other/secrets", "data", false},
		{"data/secrets/eu", "other", false},
		{"out/secrets", "out", false},
		{"vault", "data", false},
	} {
		s := config.Settings{
			DataDir: filepath.Join(top, c.data), SecretsDir: filepath.Join(top, c.secrets),
		}
		err := s.Validate(true)
		if got := strings.Contains(err.Error(),
			"DISPATCHER_SECRETS_DIR is "+s.SecretsDir+", which lies in the data folder "+s.DataDir); got !=
			c.bad {
			t.Errorf("secrets %s, data %s: %v", c.secrets, c.data, err)
		}
	}
	// DISPATCHER_SECRETS_DIR is not set
	linked := config.Settings{DataDir: filepath.Join(top, "linked")}
	if err := linked.Validate(true); !strings.Contains(err.Error(), "which lies in the data folder") {
		t.Errorf("a default that links to the database's folder: %v", err)
	}
}

// TestNothingIsReadWhileTheDrawKeysCannotBeCompared: any file could be a copy of them.
func TestNothingIsReadWhileTheDrawKeysCannotBeCompared(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(s *secretsStage, path string){
		"broken": func(s *secretsStage, path string) {
			s.write(path, folderKey+"\n"+folderKey[1:]+"\n")
		},
		"empty":    func(s *secretsStage, path string) { s.write(path, "") },
		"a folder": func(s *secretsStage, path string) { s.check(os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSecretsStage(t)
			s.write(filepath.Join(s.secrets, "copy"), folderKey+"\n")
			s.check(os.Remove(s.drawn))
			damage(s, s.drawn)
			for _, file := range []string{"copy", "plain"} {
				content, err := s.settings.Secrets().Read(file)
				if err == nil || content != nil || !strings.Contains(err.Error(), "DISPATCHER_DRAW_KEY_FILE") ||
					!strings.HasPrefix(err.Error(), file+" is not read") ||
					strings.Contains(err.Error(), folderKey[1:]) {
					t.Errorf("%s: %q, %v", file, content, err)
				}
			}
			s.check(os.RemoveAll(s.drawn))
			if content, err := s.settings.Secrets().Read("plain"); err != nil ||
				string(content) != "right\n" {
				t.Errorf("without draw keys: %q, %v", content, err)
			}
		})
	}
}

// TestTheKeyOfTheLogIsNotReadAndOtherSecretsAre: it has another format than a draw key.
func TestTheKeyOfTheLogIsNotReadAndOtherSecretsAre(t *testing.T) {
	t.Parallel()
	s := newSecretsStage(t)
	s.settings.SealKeyFile = filepath.Join(s.outside, "seal.key")
	const key = "PRIVATE+KEY+sms.example.com+1b2c3d4e+AbCd"
	s.write(s.settings.SealKeyFile, "# keys\n"+key+"\n")
	s.write(filepath.Join(s.secrets, "copy"), "x\n"+key+"\n")
	if content, err := s.settings.Secrets().Read("plain"); err != nil || string(content) != "right\n" {
		t.Errorf("%q, %v", content, err)
	}
	content, err := s.settings.Secrets().Read("copy")
	if err == nil || content != nil || !strings.Contains(err.Error(),
		"copy is the key of the log (DISPATCHER_SEAL_KEY_FILE)") {
		t.Errorf("%q, %v", content, err)
	}
}

// TestWhatOnlySoundsLikeASecretIsTaken: a setting whose name sounds like a secret is accepted for
// the provider that names it so, in its place, and nowhere else.
func TestWhatOnlySoundsLikeASecretIsTaken(t *testing.T) {
	t.Parallel()
	for settings, fine := range map[string]bool{
		"provider: vonage, settings: {api_key: abcd1234}":         true,
		"provider: vonage, settings: {api_secret: abcd1234}":      false,
		"provider: vonage, settings: {query: {api_key: abcd}}":    false,
		"provider: telnyx, settings: {api_key: abcd1234}":         false,
		"provider: vonage, settings: {api_key_file: /etc/secret}": true,

		"provider: httpapi, settings: {secrets: {password: /etc/secret}}":                  true,
		"provider: httpapi, settings: {request: {secrets: {password: /etc/secret}}}":       false,
		`provider: httpapi, settings: {request: {query: {password: "{secret:password}"}}}`: true,
		`provider: httpapi, settings: {request: {query: {password: "hunter2"}}}`:           false,
		`provider: httpapi, settings: {callback: {query: {secret: "{callback_secret}"}}}`:  true,
		`provider: telnyx, settings: {request: {query: {password: "{secret:password}"}}}`:  false,
	} {
		document := fmt.Sprintf("channels: {a: {%s}}\nroutes: [{name: default, weights: {a: 1}}]\n",
			settings)
		_, err := config.ParseRouting("r.yaml", []byte(document))
		if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "secrets do not belong") {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
