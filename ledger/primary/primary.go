// Package primary keeps connections on the primary of several PostgreSQL servers. Among the hosts
// of an address it chooses the one that accepts writes, it closes connections to a server that is
// read-only now, and it does not connect to an old primary after a failover.
//
// An old primary that was cut off and comes back does not know its successor. Slots that are
// claimed on it are not counted on the successor, so limits would be exceeded. Each failover begins
// a new timeline (PostgreSQL manual, "Timelines"). A process that has seen the newer timeline
// therefore recognises the old primary. A process that has not seen it cannot: the failover manager
// must fence the old primary.
package primary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Guard remembers the newest timeline of each cluster that its connections have reached. The zero
// value is ready to use. It is safe for concurrent use.
type Guard struct {
	mu     sync.Mutex
	newest map[string]uint32 // guarded by mu; by system identifier
}

// origin identifies the server of a connection: the system identifier of its cluster, and the
// timeline it was on.
type origin struct {
	system   string
	timeline uint32
}

// originKey is the key of the origin in the connection's CustomData.
const originKey = "dispatcher.origin"

// connectTimeout bounds one try to connect to one host when the address has no connect_timeout.
// With TLS and a password it takes seven round trips, so a server with a round trip of a second is
// reached.
const connectTimeout = 8 * time.Second

// Configure makes connections by config guarded. When the address names several hosts and no
// target_session_attrs, the first host that accepts writes is used.
func (g *Guard) Configure(config *pgconn.Config) {
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	// hangUp needs warnings, even if the role has client_min_messages set to error
	config.RuntimeParams["client_min_messages"] = "warning"
	wanted := config.ValidateConnect
	if wanted == nil && SeveralHosts(config) {
		wanted = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if wanted != nil {
			if err := wanted(ctx, conn); err != nil {
				return err
			}
		}
		return g.admit(ctx, conn)
	}
	keepOpen := config.OnPgError
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != readOnlyTransaction && keepOpen(conn, err)
	}
	config.OnNotice = hangUp
}

// readOnlyTransaction is the error code of a write on a standby, or on a server that has become
// one. The connection is then closed, so that the next one is opened to the present primary.
const readOnlyTransaction = "25006"

// Begin is Configure for a caller that connects once. With several hosts it asks all of them first,
// see Scout.
func (g *Guard) Begin(ctx context.Context, config *pgconn.Config) {
	g.Configure(config)
	if SeveralHosts(config) {
		g.Scout(ctx, config)
	}
}

// SeveralHosts reports whether the address names more than one host.
func SeveralHosts(config *pgconn.Config) bool { return len(hosts(config)) > 1 }

// hosts are the hosts of an address, each with the ways to connect to it. There are two ways when
// sslmode allows both TLS and plain connections.
func hosts(config *pgconn.Config) (all [][]*pgconn.FallbackConfig) {
	ways := append([]*pgconn.FallbackConfig{
		{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig},
	}, config.Fallbacks...)
	for _, way := range ways {
		at := slices.IndexFunc(all, func(host []*pgconn.FallbackConfig) bool {
			return host[0].Host == way.Host && host[0].Port == way.Port
		})
		if at < 0 {
			all = append(all, []*pgconn.FallbackConfig{way})
		} else {
			all[at] = append(all[at], way)
		}
	}
	return all
}

// admit returns an error for a server that another one has taken over from.
func (g *Guard) admit(ctx context.Context, conn *pgconn.PgConn) error {
	o, ok := readOrigin(ctx, conn)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok && conn.IsClosed():
		return errors.New("the connection broke")
	case !ok:
		return nil
	}
	if newest := g.note(o); o.timeline < newest {
		return fmt.Errorf("this server is on timeline %d of its cluster, and another one took "+
			"over with timeline %d: it is an old primary that has to be shut down. "+
			"If going back to it is meant, start the dispatcher again",
			o.timeline, newest)
	}
	conn.CustomData()[originKey] = o
	return nil
}

// note stores the timeline of a server and returns the newest one of its cluster.
func (g *Guard) note(o origin) uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest == nil {
		g.newest = make(map[string]uint32)
	}
	g.newest[o.system] = max(g.newest[o.system], o.timeline)
	return g.newest[o.system]
}

// Replaced reports whether this Guard knows that another server has taken over from the one of a
// connection.
func (g *Guard) Replaced(conn *pgconn.PgConn) bool {
	o, ok := conn.CustomData()[originKey].(origin)
	return ok && g.note(o) > o.timeline
}

// selectOrigin reads the system identifier, and the current timeline from the first eight digits of
// a WAL file's name. A standby has no current timeline; pg_is_in_recovery is checked first, because
// the query would write an error into its log.
const selectOrigin = `
	select (select system_identifier from pg_control_system()),
	  case when pg_is_in_recovery() then ''
	    else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end`

// readOrigin reads the origin of a connection. ok is false for a standby, and for a service that
// looks like PostgreSQL and has no WAL of its own.
func readOrigin(ctx context.Context, conn *pgconn.PgConn) (o origin, ok bool) {
	results, err := conn.Exec(ctx, selectOrigin).ReadAll()
	if err != nil {
		return origin{}, false
	}
	row := results[0].Rows[0]
	timeline, err := strconv.ParseUint(string(row[1]), 16, 32)
	return origin{system: string(row[0]), timeline: uint32(timeline)}, err == nil
}
