package control

import (
	"context"
	"slices"
	"strings"

	"dispatcher/config"
)

// SetState changes the state of a channel.
func (d *Draft) SetState(
	ctx context.Context, channel string, state config.State,
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	if err := knownChannel(d.Document.Routing, channel); err != nil {
		return nil, err
	}
	return d.Make(ctx, func() (*config.Document, error) {
		return d.Document.SetState(channel, state)
	})
}

// knownChannel returns an Unknown that lists all channels when this is none of them.
func knownChannel(doc *config.Routing, channel string) error {
	if names := doc.ChannelNames(); !slices.Contains(names, channel) {
		return unknownf("there is no channel %q; choose one of %s", channel,
			strings.Join(names, ", "))
	}
	return nil
}
