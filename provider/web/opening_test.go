package web_test

import (
	"errors"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// deafChannel is an adapter over nothing.
type deafChannel struct {
	*web.Channel
	callback string
}

func (deafChannel) Capabilities() provider.Capabilities { return provider.Capabilities{} }

func (deafChannel) ReadCallback(*provider.Callback) (provider.CallbackContent, error) {
	return provider.CallbackContent{}, nil
}

func TestAChannelIsOpenedOnlyWithSettingsWithoutFault(t *testing.T) {
	t.Parallel()
	fault := errors.New("api_key_file: is missing")
	for _, want := range []error{nil, fault} {
		parse := func(_ map[string]any, o web.Environment) (string, error) { return o.Callback, want }
		made := func(callback string) deafChannel {
			return deafChannel{web.New(webtest.LocalConfig(t, "http://127.0.0.1:1"), plainAPI{"GET"}), callback}
		}
		c, err := web.Open(nil, web.Environment{Callback: "https://sms.example.org"}, parse, made)
		if want != nil {
			if c != nil || !errors.Is(err, want) {
				t.Errorf("channel %v, error %v", c, err)
			}
			continue
		}
		if err != nil || c.(deafChannel).callback != "https://sms.example.org" {
			t.Errorf("channel %v, error %v", c, err)
		}
	}
}
