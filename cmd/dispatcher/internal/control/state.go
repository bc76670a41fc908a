package control

import (
	"context"
	"strings"

	"dispatcher/config"
)

// SetState changes the state of a channel.
func (d *Draft) SetState(
	ctx context.Context, channel string, state config.ChannelState,
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	if _, err := ChannelOf(d.Document.Routing, channel); err != nil {
		return nil, err
	}
	return d.Make(ctx, func() (*config.Document, error) {
		return d.Document.SetState(channel, state)
	})
}

// ChannelOf finds a channel by name. The error of an unknown name is an Unknown that lists all
// channels.
func ChannelOf(doc *config.Routing, name string) (*config.Channel, error) {
	channel := doc.Channel(name)
	if channel == nil {
		return nil, unknownf("there is no channel %q; choose one of %s", name,
			strings.Join(doc.ChannelNames(), ", "))
	}
	return channel, nil
}
