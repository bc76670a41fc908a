package bird

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestSettingsFaultsNameTheirKeys(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values map[string]any
		want   string
	}{
		"no access key": {map[string]any{}, "access_key_file: is missing"},
		"unknown file":  {map[string]any{"access_key_file": "nowhere"}, "access_key_file"},
		"two lines": {
			map[string]any{"access_key_file": "two"}, "access_key_file: holds something else",
		},
		"three signing keys": {
			map[string]any{
				"access_key_file": "access", "signing_key_files": []any{"old", "old", "old"},
			}, "signing_key_files: names 3 files",
		},
		"empty signing key": {
			map[string]any{"access_key_file": "access", "signing_key_files": "empty"},
			"signing_key_files: empty is empty",
		},
		"no workspace": {
			map[string]any{"access_key_file": "access", "api": "channels", "channel": channelID},
			"workspace: is not an id",
		},
		"a path as channel": {
			map[string]any{
				"access_key_file": "access", "api": "channels", "workspace": workspace,
				"channel": "../../x",
			}, "channel: is not an id",
		},
		"channel for messages": {
			map[string]any{"access_key_file": "access", "channel": channelID},
			"channel: belongs to api: channels",
		},
		"unknown API": {
			map[string]any{"access_key_file": "access", "api": "voice"},
			"api: \"voice\" is none of",
		},
		"misspelt": {
			map[string]any{"access_key_file": "access", "singing_key_files": "x"},
			"did you mean signing_key_files?",
		},
		"a secret in the open": {
			map[string]any{"access_key_file": "access", "access_key": "x"},
			"access_key: unknown setting",
		},
		"a query in the base": {
			map[string]any{"access_key_file": "access", "base_url": "https://x.example/?a=b"},
			"base_url",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSettings(test.values, files.Environment(callback))
			webtest.CheckFaults(t, err, []string{test.want}, "hunter2x")
		})
	}
}

func TestCapabilitiesAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"messages", "channels"} {
		webtest.CheckPromises(t, Open, channelSettings(api, nil), files.Environment(callback),
			"signing_key_files", provider.Capabilities{KeyInReceipt: true, Receipts: true})
	}
}
