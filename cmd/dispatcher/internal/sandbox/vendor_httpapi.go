package sandbox

import "dispatcher/provider/httpapi/httpapitest"

// httpapiAccount is one at a Kannel, with the description that docs/providers/httpapi.md has of it.
func httpapiAccount(s *secrets, _ string) account {
	const user = "dispatcher"
	passwordFile, password := s.text("password")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: httpapitest.New(httpapitest.Config{Gateway: httpapitest.Kannel, User: user, Password: password, Secret: secret}),
		settings: map[string]any{
			"secrets":          map[string]any{"password": passwordFile},
			"alphabet":         map[string]any{"gsm7": 0, "ucs2": 2},
			"longest_validity": "72h",
			"from":             "Sandbox",
			"request": map[string]any{"method": "GET", "path": "/cgi-bin/sendsms", "query": map[string]any{
				"username": user, "password": "{secret:password}", "from": "{from}", "to": "{to}", "text": "{text}", "charset": "UTF-8",
				"coding": "{alphabet}", "validity": "{validity_minutes}", "dlr-mask": 27, "dlr-url": "{callback_url}",
			}},
			"answer": map[string]any{"code": `regexp:^(\d+|Empty receiver number|Number\(s\)|Temporal failure)`, "outcomes": []any{
				map[string]any{"status": 202, "code": []any{0, 3}, "outcome": "accepted"},
				map[string]any{"status": "4xx", "code": []any{"Empty receiver number", "Number(s)"}, "outcome": "rejected"},
				map[string]any{"status": "4xx", "outcome": "refused"},
				map[string]any{"status": 503, "code": "Temporal failure", "outcome": "refused"},
			}},
			"callback": map[string]any{"query": map[string]any{"key": "{key}", "secret": "{callback_secret}"}, "raw": "&status=%d"},
			"verify":   map[string]any{"by": "secret", "at": "query:secret", "secret_files": []any{secretFile}},
			"receipts": map[string]any{"key": "query:key", "state": "query:status", "states": map[string]any{
				"1": "delivered", "2": "undelivered", "4": "pending", "8": "pending", "16": "undelivered",
			}},
			"inbound": map[string]any{"reference": "query:id", "from": "query:from", "to": "query:to", "text": "query:text"},
		},
	}
}
