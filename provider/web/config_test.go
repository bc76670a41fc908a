package web_test

import (
	"testing"

	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// TestAHostIsWrittenAsDNSHasIt: the connection is made for the name as it stands there.
func TestAHostIsWrittenAsDNSHasIt(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://api.example.com/v1": true, "http://[::1]:8080": true, "https://xn--bcher-kva.example": true,
		"https://b\u00fccher.example": false,
	} {
		r := settings.New(map[string]any{"base_url": address}, nil)
		web.ParseConfig(r, "")
		if err := r.Err(); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
