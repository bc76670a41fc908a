package app

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
)

// remote returns a document whose files are on another machine.
func remote(settings string) string {
	return `
channels:
  a: {provider: sandbox}
  b: {provider: smpp, settings: {address: "127.0.0.1:2775", system_id: me, ` + settings + `}}
routes: [{name: default, weights: {a: 1, b: 1}}]
`
}

func TestSettingsAreCheckedWithoutTheFilesTheyName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ settings, want string }{
		"password": {`password_file: /nowhere/password`, ""},
		"TLS": {`password_file: /nowhere/p, tls: true, tls_ca_file: /nowhere/ca, ` +
			`tls_cert_file: /nowhere/cert, tls_key_file: /nowhere/key`, ""},
		"a misspelt": {
			`password_file: p, bindz: 2`,
			"routing.yaml: channels.b.settings: bindz: unknown setting; did you mean bind?",
		},
		"a bad value": {
			`binds: none`,
			"routing.yaml: channels.b.settings: binds: is not a whole number",
		},
		"TLS half off": {
			`tls_ca_file: /nowhere/ca`,
			"tls: is off while other tls_ settings are set",
		},
	} {
		doc := versionOf(t, remote(tc.settings), "")
		err := CheckChannels("routing.yaml", doc, nil)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: got error %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestASenderThatSMPPCannotWriteIsAFaultOfTheDocument unless a rule of the channel replaces it.
func TestASenderThatSMPPCannotWriteIsAFaultOfTheDocument(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		`window: 1}, senders: {default: ACME`:   "",
		`window: 1}, senders: {default: Müller`: "routing.yaml: channels.b.senders.default: ",
		`window: 1}, senders: {rules: [{country: de, from: Müller}]`: "routing.yaml: " +
			"channels.b.senders.rules[0].from: ",
		`source_rules: [{sender: Müller, from: ACME}]}, senders: {default: Müller`: "",
		`window: 1}, senders: {default: Müller, rules: [{from: ACME}]`:             "",
	} {
		doc := versionOf(t, remote(settings), "")
		if err := CheckChannels("routing.yaml", doc, doc); err != nil {
			t.Errorf("%s: a change of something else is refused: %v", settings, err)
		}
		err := CheckChannels("routing.yaml", doc, nil)
		if want == "" && err != nil || want != "" && !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// TestAChannelBehindTLSIsCutAndPacedAsItsSettingsSay: how the pipeline splits texts and paces the
// channel does not depend on whether its files can be read.
func TestAChannelBehindTLSIsCutAndPacedAsItsSettingsSay(t *testing.T) {
	t.Parallel()
	doc := versionOf(t,
		remote(`tls: true, tls_ca_file: ca.pem, binds: 2, window: 30, alphabet: latin1`), "")
	var got decide.Channel
	adapt(&doc.Channels[1], &got)
	if got.Concurrency != 60 || got.Segments == nil {
		t.Errorf("got %d at once, segments counted as the channel splits them: %v", got.Concurrency,
			got.Segments != nil)
	}
	adapt(&doc.Channels[0], &got)
	if got.Concurrency != sandboxWindow || got.Segments != nil {
		t.Errorf("a sandbox channel has settings of another: %+v", got)
	}
}

// TestNoChannelGetsAFileOutsideOfTheSecretsFolder: nor the draw key, which may be inside. Each
// error names its key.
func TestNoChannelGetsAFileOutsideOfTheSecretsFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key := filepath.Join(folder, "draw.key")
	for path, content := range map[string]string{
		key:                           config.NewDrawKey(),
		filepath.Join(folder, "good"): "s3cret",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := config.Settings{SecretsDir: folder, DrawKeyFile: key}
	for fault, channel := range map[string]config.Channel{
		"password_file": {
			Provider: "smpp",
			Settings: map[string]any{
				"address": "127.0.0.1:1", "system_id": "me",
				"password_file": "FILE",
			},
		},
		"tls_ca_file": {
			Provider: "smpp",
			Settings: map[string]any{
				"address": "127.0.0.1:1", "system_id": "me", "tls": true,
				"tls_ca_file": "FILE",
			},
		},
		"api_secret_file": {Provider: "vonage", Settings: map[string]any{
			"api_key": "k", "api_secret_file": "FILE", "base_url": "https://vonage.invalid",
		}},
		"auth_token_file": {
			Provider: "twilio",
			Settings: map[string]any{"api_key_secret_file": "good", "auth_token_file": "FILE"},
		},
		"signing_key_files": {
			Provider: "bird",
			Settings: map[string]any{
				"access_key_file":   "good",
				"signing_key_files": []any{"good", "FILE"},
			},
		},
		"sns_certificate_files": {
			Provider: "aws",
			Settings: map[string]any{"sns_certificate_files": "FILE"},
		},
		"proxy_password_file": {
			Provider: "sinch",
			Settings: map[string]any{
				"token_file": "good", "proxy": "http://p:1", "proxy_user": "u",
				"proxy_password_file": "FILE",
			},
		},
		"password": {
			Provider: "httpapi",
			Settings: map[string]any{"secrets": map[string]any{"password": "FILE"}},
		},
	} {
		for _, file := range []string{"/etc/passwd", "../x", "draw.key", key} {
			channel := channel
			channel.Settings = withFile(channel.Settings, file)
			if err := Faults(&channel, settings.Secrets().Read); err == nil ||
				!strings.Contains(err.Error(), fault+": "+file+" ") {
				t.Errorf("%s with %s: %v", channel.Provider, file, err)
			}
		}
	}
}

// withFile replaces FILE in the settings by a name.
func withFile(settings map[string]any, file string) map[string]any {
	out := maps.Clone(settings)
	for key, value := range out {
		switch v := value.(type) {
		case map[string]any:
			out[key] = withFile(v, file)
		case []any:
			out[key] = []any{v[0], file}
		case string:
			out[key] = strings.ReplaceAll(v, "FILE", file)
		}
	}
	return out
}

// TestFilesOutsideOfEverySecretsFolderAreRefusedUnread: before the document is applied.
func TestFilesOutsideOfEverySecretsFolderAreRefusedUnread(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "a/../../x"} {
		doc := versionOf(t, `
channels:
  s: {provider: smpp, settings: {address: "127.0.0.1:1", system_id: me, password_file: `+name+`}}
  w: {provider: sinch, settings: {service_plan_id: plan, token_file: `+name+`}}
routes:
  - {name: best, mode: best_worker, channels: [s, w],
     scoring: {function: "https://scores.example", token_file: `+name+`}}
`, "")
		err := CheckChannels("routing.yaml", doc, nil)
		for _, want := range []string{
			"channels.s.settings: password_file: " + name,
			"channels.w.settings: token_file: " + name, "route best: scoring.token_file: " + name,
		} {
			if err == nil ||
				!strings.Contains(
					err.Error(),
					want+" lies outside of the secrets folder (DISPATCHER_SECRETS_DIR); put the "+
						"file",
				) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestATokenIsOneWordOfAFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		err     error
		token   string
		want    string
	}{
		"a line": {"s3cret\n", nil, "s3cret", ""},
		"no file": {"", errors.New("open token: no such file"), "", "scoring.token_file: " +
			"open token: no such file"},
		"empty":       {" \n", nil, "", "file token is empty"},
		"two words":   {"s3cret other", nil, "", "file token holds more than one word"},
		"a new line":  {"s3cret\r\nX-Injected: 1", nil, "", "file token holds more than one word"},
		"not ASCII":   {"s3crét", nil, "", "file token holds more than one word"},
		"a long file": {strings.Repeat("x", maxToken+1), nil, "", "file token is longer than"},
	} {
		doc := versionOf(t, everyMode, "")
		compiled, err := Compile(doc, 1)
		if err != nil {
			t.Fatal(err)
		}
		troubles := readTokens(doc, compiled,
			func(string) ([]byte, error) { return []byte(tc.content), tc.err })
		if got := compiled.Routes[3].Scoring.Function.Token; got != tc.token {
			t.Errorf("%s: token %q", name, got)
		}
		switch err := troubles["best"]; {
		case tc.want == "" && err != nil:
			t.Errorf("%s: got error %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		case err != nil && strings.Contains(err.Error(), "s3c"):
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}
