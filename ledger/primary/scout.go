package primary

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// Scout reads the timelines of all hosts of a guarded config at once. It returns when all have
// answered or timed out. Without it, a process that has not met the successor would use an old
// primary that is still running and comes first in the address. A host that does not answer is
// ignored.
func (g *Guard) Scout(ctx context.Context, config *pgconn.Config) {
	var asking sync.WaitGroup
	for _, host := range hosts(config) {
		asking.Go(func() { g.ask(ctx, config.Copy(), host) })
	}
	asking.Wait()
}

// ask connects to one host of an address, primary or standby, and notes its timeline.
func (g *Guard) ask(ctx context.Context, config *pgconn.Config, ways []*pgconn.FallbackConfig) {
	ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port,
		ways[0].TLSConfig, ways[1:]
	config.ValidateConnect = nil
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	if o, ok := readOrigin(ctx, conn); ok {
		g.note(o)
	}
	_ = conn.Close(ctx) // the timeline has been read
}
