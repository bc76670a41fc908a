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
		in.Reference = vendorOf(c.Provider).reference(s.inboundID(in.At))
		return c.running.inbound(ctx, in)
	}
	return fmt.Errorf("there is no channel %q; choose one of %s", channel, strings.Join(s.names(), ", "))
}

// inboundID is a number for the id of a message of a subscriber. It has 48 bits, as those of other messages.
func (s *Sandbox) inboundID(at time.Time) uint64 {
	return uint64(at.UnixMilli())<<idBits | s.inbounds.Add(1)%(1<<idBits) //nolint:gosec // After 1970.
}

// names are those of the channels.
func (s *Sandbox) names() []string {
	names := make([]string, len(s.carriers))
	for i, c := range s.carriers {
		names[i] = c.Name
	}
	return names
}
