package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dispatcher/provider"
)

// errNoInbound is returned by carriers whose API hands no messages of subscribers over.
var errNoInbound = errors.New("the API of this carrier has no messages of subscribers")

// Inbound sends a message of a subscriber to the dispatcher, over the carrier of a channel. An HTTP carrier waits for the
// answer, and an error says that it was not taken; SMPP sends it when there is a bind, and again until it is taken.
func (s *Sandbox) Inbound(ctx context.Context, channel string, in provider.Inbound) error {
	for _, c := range s.carriers {
		if c.Name != channel {
			continue
		}
		if in.From == "" || in.To == "" || in.Text == "" {
			return errors.New("name from, to and text")
		}
		in.At = time.Now()
		in.Reference = fmt.Sprintf("inbound-%x", in.At.UnixNano())
		return c.running.inbound(ctx, in)
	}
	return fmt.Errorf("there is no channel %q; choose one of %s", channel, strings.Join(s.names(), ", "))
}

// names are those of the channels.
func (s *Sandbox) names() []string {
	names := make([]string, len(s.carriers))
	for i, c := range s.carriers {
		names[i] = c.Name
	}
	return names
}
