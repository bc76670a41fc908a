package main

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
)

// TestPreviewWarnsOfWhatIsSentInTheOpen: unencrypted connections, and an address of the admin
// server that other networks reach.
func TestPreviewWarnsOfWhatIsSentInTheOpen(t *testing.T) {
	t.Parallel()
	channel := func(more string) string {
		return `channels:
  open: {provider: sinch, settings: {service_plan_id: plan, token_file: t` + more + `}}
routes: [{name: default, mode: best_worker, channels: [open], scoring: {function: "FUNCTION"}}]
lanes: {otp: {}}
`
	}
	for name, c := range map[string]struct{ settings, function, listen, want string }{
		"vendor's own": {"", "https://scores.example", "127.0.0.1:8080", ""},
		"a name": {
			`, base_url: "http://api.example.com"`, "https://scores.example", "127.0.0.1:8080",
			"Channel open sends numbers, texts and its secrets to api.example.com",
		},
		"a public address": {
			`, base_url: "http://8.8.8.8/x"`, "https://scores.example", "127.0.0.1:8080",
			"to 8.8.8.8 without encryption",
		},
		"a private address": {
			`, base_url: "http://10.1.2.3", allow_private: true`, "https://scores.example",
			"10.1.2.3:8080", "",
		},
		"this machine": {
			`, base_url: "http://127.0.0.1:1", allow_private: true`, "https://scores.example",
			"[::1]:8080", "",
		},
		"a name within": {
			`, base_url: "http://gateway", allow_private: true`, "https://scores.example",
			"localhost:8080", "",
		},
		"encrypted": {
			`, base_url: "https://api.example.com"`, "https://scores.example", "127.0.0.1:8080", "",
		},
		"function": {
			"", "http://scores.example", "127.0.0.1:8080",
			"Route default calls its scoring function at scores.example without",
		},
		"all interfaces": {"", "https://scores.example", ":8080", "DISPATCHER_LISTEN is :8080"},
		"all, in full": {
			"", "https://scores.example", "0.0.0.0:8080", "DISPATCHER_LISTEN is 0.0.0.0:8080",
		},
		"a public interface": {
			"", "https://scores.example", "8.8.8.8:8080", "DISPATCHER_LISTEN is 8.8.8.8:8080",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "routing.yaml",
				strings.Replace(channel(c.settings), "FUNCTION", c.function, 1))
			env := []string{"DISPATCHER_LISTEN=" + c.listen}
			warnings := decoded[report.Preview](t,
				dispatcher(t, "", env, "preview", "--routing", path, "--format", "json")).Warnings
			all := strings.Join(warnings, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("%q, want %q", all, c.want)
			}
			got := dispatcher(t, "", env, "preview", "--routing", path)
			if !strings.Contains(got.err, c.want) || c.want == "" && got.err != "" {
				t.Errorf("standard error of the table: %q", got.err)
			}
		})
	}
}
