package aws

import (
	"strings"
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
		"no region": {map[string]any{"region": nil}, "region: is not a region"},
		"a host as region": {
			map[string]any{"region": "evil.example/"}, "region: is not a region",
		},
		"no key": {
			map[string]any{"access_key_id": nil}, "access_key_id: is missing",
		},
		"no secret key": {
			map[string]any{"secret_access_key_file": nil}, "access_key_id: is missing",
		},
		"keys twice": {
			map[string]any{"credentials": "default"},
			"access_key_id: belongs to credentials: static",
		},
		"metadata without asking": {
			map[string]any{"instance_metadata": true},
			"instance_metadata: belongs to credentials: default",
		},
		"topics missing": {
			map[string]any{"sns_topics": nil}, "sns_topics: is missing; SNS signs for everybody",
		},
		"no ARN": {
			map[string]any{"sns_topics": "sms-events"}, "sns_topics: \"sms-events\" is not an ARN",
		},
		"no certificate": {
			map[string]any{"sns_certificate_files": "no certificate"},
			"sns_certificate_files: no certificate holds no PEM certificate",
		},
		"three secrets": {
			map[string]any{"callback_secret_files": []any{"old", "old", "old"}},
			"callback_secret_files: names 3 files",
		},
		"a price in words": {map[string]any{"max_price": "10 cents"}, "max_price: is not a price"},
		"an unknown type": {
			map[string]any{"message_type": "otp"}, "message_type: \"otp\" is none of",
		},
		"misspelt": {
			map[string]any{"sns_topic": homeTopic},
			"sns_topic: unknown setting; did you mean sns_topics?",
		},
		"a secret in the open": {
			map[string]any{"secret_access_key": "x"}, "secret_access_key: unknown setting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSettings(channelSettings(test.values), files().Environment(callback))
			webtest.CheckFaults(t, err, []string{test.want}, "hunter2x")
		})
	}
}

func TestCapabilitiesAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	webtest.CheckPromises(t, Open, channelSettings(nil), files().Environment(callback),
		"sns_certificate_files", provider.Capabilities{KeyInReceipt: true, Receipts: true})
}

// TestDefaultCredentialsComeFromTheEnvironment changes the environment, so it is not parallel.
func TestDefaultCredentialsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	c := openDefault(t, false)
	r, err := apiOf(c).Compose(submission())
	if err != nil || !strings.Contains(r.Header.Get("Authorization"),
		"Credential=AKIDENVIRONMENT/") {
		t.Errorf("error %v", err)
	}
}

// TestTheMetadataServiceIsAskedOnlyWhenTheSettingsSaySo points the SDK at a server that records
// requests.
func TestTheMetadataServiceIsAskedOnlyWhenTheSettingsSaySo(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_PROFILE",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "testdata/none")
	t.Setenv("AWS_CONFIG_FILE", "testdata/none")
	address, asked := topicServer(t, 404)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
	if r := openDefault(t, false).Send(t.Context(), *submission()); r.Outcome != provider.Refused ||
		r.Code != "credentials" {
		t.Errorf("%v %s", r.Outcome, r.Code)
	}
	if len(*asked) != 0 {
		t.Errorf("the metadata service was asked %d times", len(*asked))
	}
	openDefault(t, true).Send(t.Context(), *submission())
	if len(*asked) == 0 {
		t.Error("the metadata service got no request, although the settings allow it")
	}
}

func openDefault(t *testing.T, metadata bool) *Channel {
	t.Helper()
	c, err := Open(map[string]any{
		"region": homeRegion, "credentials": "default", "instance_metadata": metadata,
		"base_url": "http://127.0.0.1:1", "allow_private": true,
	}, files().Environment(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c.(*Channel)
}
