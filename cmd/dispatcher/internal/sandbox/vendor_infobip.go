package sandbox

import "dispatcher/provider/infobip/infobiptest"

func infobipAccount(s *secrets, _ string) account {
	keyFile, key := s.text("api_key")
	secretFile, _ := s.text("callback_secret") // the adapter alone knows it: it stands behind the address of each message
	return account{
		shape: infobiptest.New(infobiptest.Config{Key: key}),
		settings: map[string]any{
			"api_key_file": keyFile, "callback_auth": "url", "callback_secret_files": []string{secretFile}, "from": "Sandbox",
		},
	}
}
