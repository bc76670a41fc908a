package sandbox

import "dispatcher/provider/vonage/vonagetest"

// vonageAccount is one whose messages go by the Messages API, and vonageSMSAccount one of the SMS API: an account at Vonage
// has its receipts from one of them.
func vonageAccount(s *secrets, _ string) account { return vonageOf(s, "sandbox1", false) }

func vonageSMSAccount(s *secrets, _ string) account {
	a := vonageOf(s, "sandbox2", true)
	a.settings["api"] = "sms"
	return a
}

func vonageOf(s *secrets, key string, bySMS bool) account {
	secretFile, secret := s.text("api_secret")
	signatureFile, signature := s.text("signature_secret")
	return account{
		shape: vonagetest.New(vonagetest.Config{SMS: bySMS, APIKey: key, APISecret: secret, Secret: signature}),
		settings: map[string]any{
			"api_key": key, "api_secret_file": secretFile, "signature_secret_files": []string{signatureFile}, "from": "Sandbox",
		},
	}
}
