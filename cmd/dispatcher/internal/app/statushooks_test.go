package app

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// TestStatusEventsAreSentToTheServicesThatTheSettingsName: from a whole process. A change of the
// file takes effect without a restart.
func TestStatusEventsAreSentToTheServicesThatTheSettingsName(t *testing.T) {
	t.Parallel()
	events := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("webhook-signature") != "" {
			select {
			case events <- string(body):
			default: // nobody reads them any more
			}
		}
	}))
	t.Cleanup(server.Close)
	s := newStageWith(t, oneChannel, withStatusWebhook(t, server.URL), nil)
	s.publish(1)
	select {
	case e := <-events:
		if !strings.Contains(e, `"state":"accepted"`) {
			t.Errorf("got %s, want %q in it", e, `"state":"accepted"`)
		}
	case <-time.After(tier.LongestWait):
		t.Fatal("got no event")
	}
	received := make(chan struct{}, 100)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case received <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(other.Close)
	file := s.app.opts.Settings.StatusWebhooksFile
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), server.URL, other.URL)),
		0o600); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for over := time.After(2 * tier.LongestWait); ; {
		s.publish(1)
		select {
		case <-received:
			return
		case <-ticker.C:
		case <-over:
			t.Fatal("got no event to the other address")
		}
	}
}

// withStatusWebhook sends the events of accepted messages to a service.
func withStatusWebhook(t *testing.T, url string) func(*Options) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"shop.key": "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))),
		"hooks.yaml": "webhooks:\n  - {name: shop, url: \"" + url + "\", allow_private: true, " +
			"secret_files: [shop.key], states: [accepted]}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *Options) {
		o.Settings.SecretsDir = folder
		o.Settings.StatusWebhooksFile = filepath.Join(folder, "hooks.yaml")
		o.ReadWebhooksEvery = tier.Size(100*time.Millisecond, 0)
	}
}
