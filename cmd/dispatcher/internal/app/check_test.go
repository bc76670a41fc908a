package app

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/dispatch"
)

// remote is a document whose files lie on another machine.
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
		"password":     {`password_file: /nowhere/password`, ""},
		"TLS":          {`password_file: /nowhere/p, tls: true, tls_ca_file: /nowhere/ca, tls_cert_file: /nowhere/cert, tls_key_file: /nowhere/key`, ""},
		"a misspelt":   {`password_file: p, bindz: 2`, "routing.yaml: channels.b.settings: bindz: unknown setting; did you mean bind?"},
		"a bad value":  {`binds: none`, "routing.yaml: channels.b.settings: binds: is no whole number"},
		"TLS half off": {`tls_ca_file: /nowhere/ca`, "tls: is off while other tls_ settings are set"},
	} {
		doc := versionOf(t, remote(tc.settings), "")
		err := CheckChannels("routing.yaml", doc)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestAChannelBehindTLSIsCutAndPacedAsItsSettingsSay: what the pipeline knows of it does not depend on
// whether its files can be read.
func TestAChannelBehindTLSIsCutAndPacedAsItsSettingsSay(t *testing.T) {
	t.Parallel()
	doc := versionOf(t, remote(`tls: true, tls_ca_file: ca.pem, binds: 2, window: 30, alphabet: latin1`), "")
	var got dispatch.Channel
	adapt(&doc.Channels[1], &got)
	if got.Concurrency != 60 || got.Segments == nil {
		t.Errorf("%d at once, segments counted as the channel cuts them: %v", got.Concurrency, got.Segments != nil)
	}
	adapt(&doc.Channels[0], &got)
	if got.Concurrency != sandboxWindow || got.Segments != nil {
		t.Errorf("a sandbox channel took over what another had: %+v", got)
	}
}
