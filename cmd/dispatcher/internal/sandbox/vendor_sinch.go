package sandbox

import "dispatcher/provider/sinch/sinchtest"

func sinchAccount(s *secrets, _ string) account {
	const plan = "sandbox-plan"
	tokenFile, token := s.text("token")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: sinchtest.New(sinchtest.Config{Plan: plan, Token: token, Secret: secret}),
		settings: map[string]any{
			"service_plan_id": plan, "token_file": tokenFile, "callback_secret_files": []string{secretFile}, "from": "Sandbox",
		},
	}
}
