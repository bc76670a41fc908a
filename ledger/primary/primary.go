// Package primary keeps connections with the one PostgreSQL server of several that takes writes: it
// prefers that one among the hosts of an address, lets go of a server that takes no writes any
// more, and does not go back to one that another has taken over from.
//
// A primary that was cut off and comes back knows nothing of its successor. Whoever claims slots
// there shares them with nobody, and limits are kept on neither of the two. Each take-over begins a
// new timeline (PostgreSQL manual, "Timelines"), so that the server of an older one is known as
// soon as one of the newer has been seen. A process that has seen none cannot tell: fencing the old
// primary is what a manager of failovers is for.
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

// Guard remembers the newest timeline of each cluster that its connections have met. The zero value
// has met none. It is safe for concurrent use.
type Guard struct {
	mu     sync.Mutex
	newest map[string]uint32 // guarded by mu; by system identifier
}

// origin is where a connection leads: a cluster by its system identifier, and the timeline it was
// on.
type origin struct {
	system   string
	timeline uint32
}

// originKey is where a connection keeps its origin, among the data that callers may give it.
const originKey = "dispatcher.origin"

// connectTimeout bounds one try to connect to one host when the address names no connect_timeout.
// To connect takes seven round trips with TLS and a password, so a server that is a second away is
// reached.
const connectTimeout = 8 * time.Second

// Configure lets connections by config be guarded. When the address names several hosts and does
// not say which of them it wants (target_session_attrs), it is the first that takes writes.
func (g *Guard) Configure(config *pgconn.Config) {
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	// hangUp has to hear of it, whatever the role is set to
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

// readOnlyTransaction is what a server says that is a standby, or was made one. The connection is
// closed, so that the next one is opened to whoever takes writes now.
const readOnlyTransaction = "25006"

// Begin is Configure for who connects once: of several hosts all are asked first, see Scout.
func (g *Guard) Begin(ctx context.Context, config *pgconn.Config) {
	g.Configure(config)
	if SeveralHosts(config) {
		g.Scout(ctx, config)
	}
}

// SeveralHosts reports whether the address names more than one host.
func SeveralHosts(config *pgconn.Config) bool { return len(hosts(config)) > 1 }

// hosts are those of an address, each with the ways to connect to it: there are two when sslmode
// asks to try with TLS and without.
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

// admit refuses a server that another has taken over from.
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

// note remembers where a connection leads and returns the newest timeline of that cluster.
func (g *Guard) note(o origin) uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest == nil {
		g.newest = make(map[string]uint32)
	}
	g.newest[o.system] = max(g.newest[o.system], o.timeline)
	return g.newest[o.system]
}

// Replaced reports whether another server has taken over, as far as is known here, from the one
// that a connection leads to.
func (g *Guard) Replaced(conn *pgconn.PgConn) bool {
	o, ok := conn.CustomData()[originKey].(origin)
	return ok && g.note(o) > o.timeline
}

// selectOrigin reads the system identifier, and the timeline that is written to from the first
// eight digits of a WAL file's name. A standby has none, and is not to write an error into its log
// for being asked.
const selectOrigin = `
	select (select system_identifier from pg_control_system()),
	  case when pg_is_in_recovery() then ''
	    else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end`

// readOrigin asks where a connection leads. It is false when that cannot be told: of a standby, and
// of a service that looks like PostgreSQL and has no WAL of its own.
func readOrigin(ctx context.Context, conn *pgconn.PgConn) (o origin, ok bool) {
	results, err := conn.Exec(ctx, selectOrigin).ReadAll()
	if err != nil {
		return origin{}, false
	}
	row := results[0].Rows[0]
	timeline, err := strconv.ParseUint(string(row[1]), 16, 32)
	return origin{system: string(row[0]), timeline: uint32(timeline)}, err == nil
}
