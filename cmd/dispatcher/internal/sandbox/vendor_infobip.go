package sandbox

import "dispatcher/provider/infobip/infobiptest"

// infobipAccount has receipts called at the address of each message, whose proof the adapter alone can make, and messages of
// subscribers with the user and the password of the account.
func infobipAccount(s *secrets, _ string) account {
	const user = "sandbox"
	keyFile, key := s.text("api_key")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: infobiptest.New(infobiptest.Config{Key: key, User: user, Password: secret}),
		settings: map[string]any{
			"api_key_file": keyFile, "callback_auth": []string{"url", "basic"}, "callback_user": user, "callback_secret_files": []string{secretFile}, "from": "Sandbox",
		},
	}
}
