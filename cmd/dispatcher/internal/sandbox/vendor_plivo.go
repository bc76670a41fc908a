package sandbox

import (
	"strings"

	"dispatcher/provider/plivo/plivotest"
)

func plivoAccount(s *secrets, _ string) account {
	id := "MA" + strings.Repeat("0", 18)
	tokenFile, token := s.text("auth_token")
	return account{
		shape: plivotest.New(plivotest.Config{AuthID: id, AuthToken: token}), path: "/v1",
		settings: map[string]any{"auth_id": id, "auth_token_file": []string{tokenFile}, "from": "+15550100100"},
	}
}
