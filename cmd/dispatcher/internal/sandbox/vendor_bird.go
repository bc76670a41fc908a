package sandbox

import "dispatcher/provider/bird/birdtest"

func birdAccount(s *secrets, _ string) account {
	keyFile, key := s.text("access_key")
	signingFile, signing := s.text("signing_key")
	return account{
		shape:    birdtest.New(birdtest.Config{AccessKey: key, SigningKey: signing}),
		settings: map[string]any{"access_key_file": keyFile, "signing_key_files": []string{signingFile}, "from": "Sandbox"},
	}
}
