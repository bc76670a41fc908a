package primary

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// Scout asks all hosts of a guarded config at once on which timeline they are, and returns when all
// have answered or had their time. Without it an old primary that lives, and is the first of the
// address, would be taken by whoever has not met its successor. A host that does not answer tells
// nothing.
func (g *Guard) Scout(ctx context.Context, config *pgconn.Config) {
	var asking sync.WaitGroup
	for _, host := range hosts(config) {
		asking.Go(func() { g.ask(ctx, config.Copy(), host) })
	}
	asking.Wait()
}

// ask connects to one host of an address, whatever kind of server it is, and notes its timeline.
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
	_ = conn.Close(ctx) // it has said what there was to say
}
