package sandbox

import (
	"strings"

	"dispatcher/provider/twilio/twiliotest"
)

func twilioAccount(s *secrets, _ string) account {
	accountSID, keySID := "AC"+strings.Repeat("0", 32), "SK"+strings.Repeat("0", 32)
	keyFile, key := s.text("api_key_secret")
	tokenFile, token := s.text("auth_token")
	return account{
		shape: twiliotest.New(twiliotest.Config{AccountSID: accountSID, KeySID: keySID, KeySecret: key, AuthToken: token}),
		settings: map[string]any{
			"account_sid": accountSID, "api_key_sid": keySID, "api_key_secret_file": keyFile, "auth_token_file": []string{tokenFile},
			"from": "+15550100100",
		},
	}
}
