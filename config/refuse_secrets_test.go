package config_test

import (
	"fmt"
	"strings"
	"testing"

	"dispatcher/config"
)

// TestWhatOnlySoundsLikeASecretIsTaken: with the provider that calls it so, at its place, and nowhere else.
func TestWhatOnlySoundsLikeASecretIsTaken(t *testing.T) {
	t.Parallel()
	for settings, fine := range map[string]bool{
		"provider: vonage, settings: {api_key: abcd1234}":         true,
		"provider: vonage, settings: {api_secret: abcd1234}":      false,
		"provider: vonage, settings: {query: {api_key: abcd}}":    false,
		"provider: telnyx, settings: {api_key: abcd1234}":         false,
		"provider: vonage, settings: {api_key_file: /etc/secret}": true,

		"provider: httpapi, settings: {secrets: {password: /etc/secret}}":                  true,
		"provider: httpapi, settings: {request: {secrets: {password: /etc/secret}}}":       false,
		`provider: httpapi, settings: {request: {query: {password: "{secret:password}"}}}`: true,
		`provider: httpapi, settings: {request: {query: {password: "hunter2"}}}`:           false,
		`provider: httpapi, settings: {callback: {query: {secret: "{callback_secret}"}}}`:  true,
		`provider: telnyx, settings: {request: {query: {password: "{secret:password}"}}}`:  false,
	} {
		document := fmt.Sprintf("channels: {a: {%s}}\nroutes: [{name: default, weights: {a: 1}}]\n", settings)
		_, err := config.ParseRouting("r.yaml", []byte(document))
		if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "secrets do not belong") {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
