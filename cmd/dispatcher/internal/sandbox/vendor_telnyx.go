package sandbox

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"

	"dispatcher/provider/telnyx/telnyxtest"
)

func telnyxAccount(s *secrets, _ string) account {
	keyFile, key := s.text("api_key")
	_, text := s.file("signing_seed", func() string { return base64.StdEncoding.EncodeToString(randomBytes(ed25519.SeedSize)) })
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		s.fail(errors.New("the seed of a Telnyx account cannot be read; remove its file"))
		seed = make([]byte, ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, _ := private.Public().(ed25519.PublicKey)
	return account{
		shape: telnyxtest.New(telnyxtest.Config{APIKey: key, Key: private}), path: "/v2",
		settings: map[string]any{
			"api_key_file": keyFile, "public_key": base64.StdEncoding.EncodeToString(public),
			"from": "+15550100100", "messaging_profile_id": "40000000-0000-4000-8000-000000000000",
		},
	}
}
