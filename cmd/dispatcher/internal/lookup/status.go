package lookup

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Status reads the status under the routing in force. Receipts of a channel are expected when the
// dispatcher waits for them, which also depends on the settings of its provider. It leaves out
// instances whose last heartbeat is older than deadAfter.
func Status(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
	doc *config.Routing,
) (*status.Now, error) {
	return status.Read(ctx, l, deadAfter, version, doc, app.Awaits)
}

// Channels reads the channels of the routing in force with their load and status.
func Channels(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
	doc *config.Routing,
) (*status.ChannelList, error) {
	now, err := Status(ctx, l, deadAfter, version, doc)
	if err != nil {
		return nil, err
	}
	return status.ReadChannels(ctx, l, doc, now)
}
