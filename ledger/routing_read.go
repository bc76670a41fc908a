package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func scanVersion(r pgx.CollectableRow) (RoutingVersion, error) {
	var v RoutingVersion
	var effects string
	err := r.Scan(&v.Version, &v.Author, &v.Reason, &v.CreatedAt, &v.Document, &v.Routes, &effects,
		&v.Base, &v.Login, &v.Via)
	v.CreatedAt, v.Effects = v.CreatedAt.UTC(), document(effects)
	return v, err
}

// readVersion reads the latest version; with a number that one, and with an instant the one that
// was in force just before it: the first one, if that is older. It returns ErrNoRouting when there
// is none.
func readVersion(
	ctx context.Context, q querier, number *int64, before *time.Time,
) (RoutingVersion, error) {
	r, err := q.Query(ctx, `
		select version, author, reason, created_at, document, routes, coalesce(effects::text, ''),
		  coalesce(base, version), coalesce(login, ''), via
		from facts.routing_versions
		where ($1::bigint is null or version = $1)
		  and ($2::timestamptz is null or created_at < $2 or version = 1)
		order by version desc limit 1`, number, before)
	if err != nil {
		return RoutingVersion{}, err
	}
	v, err := pgx.CollectExactlyOneRow(r, scanVersion)
	if errors.Is(err, pgx.ErrNoRows) {
		return RoutingVersion{}, ErrNoRouting
	}
	return v, err
}

// Current returns the version that claims use now, or ErrNoRouting.
func (s *Routing) Current(ctx context.Context) (RoutingVersion, error) {
	v, err := readVersion(ctx, s.reports, nil, nil)
	return v, wrap("read routing", err)
}

// Version returns one version, or ErrNoRouting.
func (s *Routing) Version(ctx context.Context, version int64) (RoutingVersion, error) {
	v, err := readVersion(ctx, s.reports, &version, nil)
	return v, wrap("read routing", err)
}

// At returns the version that was in force just before an instant: the first one, if that is older.
func (s *Routing) At(ctx context.Context, before time.Time) (RoutingVersion, error) {
	v, err := readVersion(ctx, s.reports, nil, &before)
	return v, wrap("read routing", err)
}

// InForce is a time in which a version was in force. Base is the version with its document: itself,
// unless effects lowered its weights.
type InForce struct {
	Version, Base int64
	From, To      time.Time
}

// InForce returns the versions that were in force from one instant to another, in their order, by
// when they were created.
func (s *Routing) InForce(ctx context.Context, from, to time.Time) ([]InForce, error) {
	all, err := rows(ctx, s.db, pgx.RowToStructByPos[InForce], `
		select version, coalesce(base, version), greatest(created_at, $1::timestamptz),
		  lead(created_at, 1, $2) over (order by version)
		from facts.routing_versions
		where created_at < $2 and version >= coalesce((select max(version)
		  from facts.routing_versions where created_at <= $1), 0)
		order by version`, from, to)
	return all, wrap("read which versions were in force", err)
}

// Watch calls changed once when it begins to listen, and then after each routing that any process
// applies. It returns when ctx ends, when the connection breaks, or when changed returns an error,
// which it returns as it is. The caller then calls Watch again; no change is missed, because
// changed is called at the start.
func (s *Routing) Watch(ctx context.Context, changed func() error) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return wrap("watch routing", err)
	}
	defer closeConn(conn)
	if err := s.listen(ctx, conn); err != nil {
		return wrap("watch routing", err)
	}
	for {
		if err := changed(); err != nil {
			return err
		}
		if err := s.awaitNotification(ctx, conn); err != nil {
			return wrap("watch routing", err)
		}
	}
}

func (s *Routing) listen(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.roundTrip)
	defer cancel()
	_, err := conn.Exec(ctx, `listen `+routingChannel)
	return err
}

// awaitNotification waits for a notification. It returns an error when the server no longer answers
// or has been replaced by another one.
func (s *Routing) awaitNotification(ctx context.Context, conn *pgx.Conn) error {
	for {
		waiting, stop := context.WithTimeout(ctx, s.timeouts.watch)
		_, err := conn.WaitForNotification(waiting)
		stop()
		if err == nil || ctx.Err() != nil || !pgconn.Timeout(err) {
			return err
		}
		if s.guard.Replaced(conn.PgConn()) {
			return errConnection
		}
		if err := s.ping(ctx, conn); err != nil {
			return err
		}
	}
}

// ping checks that the server answers within the timeout of a round trip.
func (s *Routing) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.roundTrip)
	defer cancel()
	return conn.Ping(ctx)
}
