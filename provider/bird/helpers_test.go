package bird_test

import (
	"maps"
	"testing"

	"dispatcher/provider/bird"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/web/webtest"
)

const (
	accessKey  = "live_hunter2x"
	signingKey = "s1gning-hunter2x"
	workspace  = "b1405560-c8d3-4b1a-877d-3f449ad95352"
	channelID  = "a1405560-c8d3-4b1a-877d-3f449ad95352"
	callback   = "https://sms.example.com/receipts/bird-nl"
	key        = "000102030405060708090a0b0c0d0e0f"
)

// files stand in for the disk.
var files = webtest.Files{
	"access": accessKey + "\n", "signing": signingKey + "\n", "old": "0ld-hunter2x\n", "empty": "",
	"two": "a\nb\n",
}

// settings of the two APIs, to which a test adds.
func settings(api string, more map[string]any) map[string]any {
	values := map[string]any{
		"api": api, "access_key_file": "access", "signing_key_files": []any{"old", "signing"},
		"allow_private": true,
	}
	if api == "channels" {
		values["workspace"], values["channel"] = workspace, channelID
	}
	maps.Copy(values, more)
	return values
}

func open(t testing.TB, values map[string]any) *bird.Channel {
	t.Helper()
	c, err := bird.Open(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c.(*bird.Channel)
}

// account is the other side of settings.
func account(api string) birdtest.Config {
	cfg := birdtest.Config{AccessKey: accessKey, SigningKey: signingKey}
	if api == "channels" {
		cfg.Workspace, cfg.Channel, cfg.Callback = workspace, channelID, callback
	}
	return cfg
}
