package sandbox

import "dispatcher/provider/vonage/vonagetest"

func vonageAccount(s *secrets, _ string) account {
	const key = "sandbox1"
	secretFile, secret := s.text("api_secret")
	signatureFile, signature := s.text("signature_secret")
	return account{
		shape: vonagetest.New(vonagetest.Config{APIKey: key, APISecret: secret, Secret: signature}),
		settings: map[string]any{
			"api_key": key, "api_secret_file": secretFile, "signature_secret_files": []string{signatureFile}, "from": "Sandbox",
		},
	}
}
