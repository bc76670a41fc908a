package config_test

import (
	"strings"
	"testing"

	"dispatcher/config"
)

// TestNoErrorRepeatsAWrongPrefix: it may be the number of a person, written without its plus.
func TestNoErrorRepeatsAWrongPrefix(t *testing.T) {
	t.Parallel()
	const number = "447700900123"
	for at, part := range map[string]string{
		"channels.a.price.prefixes": `channels: {a: {provider: sandbox, price: {currency: EUR,
  default: "0.03", prefixes: {"447700900123": "0.02"}}}}`,
		"channels.a.limits[0].prefix": `channels: {a: {provider: sandbox,
  limits: [{window: 1s, max: 1, prefix: "447700900123"}]}}`,
		"routes[0].match.prefixes[0]": `channels: {a: {provider: sandbox}}
routes: [{name: default, match: {prefixes: ["447700900123"]}, weights: {a: 1}}]`,
		"blocked.prefixes[0]": `channels: {a: {provider: sandbox}}
blocked: {prefixes: ["447700900123"]}`,
		"paused.prefixes[0]": `channels: {a: {provider: sandbox}}
paused: {prefixes: ["447700900123"]}`,
	} {
		_, err := config.ParseRouting("routing.yaml", []byte(part))
		if err == nil || strings.Contains(err.Error(), number) ||
			!strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "does not begin a number") {
			t.Errorf("%s: got error %v", at, err)
		}
	}
	if err := config.CheckPrefix(number); err == nil || strings.Contains(err.Error(), number) {
		t.Errorf("got error %v", err)
	}
}
