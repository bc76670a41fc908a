package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// fussyAPI composes nothing.
type fussyAPI struct {
	plainAPI
	err error
}

func (f fussyAPI) Compose(*provider.Submission) (*web.Request, error) { return nil, f.err }

// TestOnlyAnUnsendableEndsTheMessage: a channel without a sender, or a vendor's own limit, is no reason to keep a message
// from the other channels.
func TestOnlyAnUnsendableEndsTheMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		outcome provider.Outcome
		code    string
	}{
		"fault of the channel": {errors.New("no sender"), provider.Refused, "uncomposed"},
		"fault of the message": {fmt.Errorf("sms: %w", web.Unsendable("there is no text")), provider.Rejected, "unsendable"},
	} {
		channel := web.New(web.Config{}, fussyAPI{plainAPI{http.MethodPost}, c.err})
		t.Cleanup(func() { _ = channel.Close(t.Context()) })
		if r := channel.Send(t.Context(), message()); r.Outcome != c.outcome || r.Code != c.code || !errors.Is(r.Err, c.err) {
			t.Errorf("%s: %v, %q, %v", name, r.Outcome, r.Code, r.Err)
		}
	}
}
