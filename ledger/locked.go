package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ChannelLock says that a session which is none of a dispatcher's has locked a channel's row.
type ChannelLock struct {
	Channel string
	PID     int // of the session, as pg_terminate_backend takes it
}

// ChannelLocks lists them by channel. It waits for no lock.
//
// The xmax of a row is the transaction that locked or changed it last, and a transaction has a
// lock on its own number until it ends. Sessions of dispatchers hold rows for as long as a claim
// takes, and the server ends one that stops in the middle, see hotSettings.
func (l *Ledger) ChannelLocks(ctx context.Context) ([]ChannelLock, error) {
	locks, err := rows(ctx, l.db, pgx.RowToStructByPos[ChannelLock], `
		select c.channel, k.pid from dispatcher.channels c
		join pg_locks k on k.locktype = 'transactionid' and k.transactionid = c.xmax
		  and k.mode = 'ExclusiveLock' and k.granted
		where not exists (select from pg_stat_activity s where s.pid = k.pid
		  and s.application_name = 'dispatcher')
		order by c.channel`)
	return locks, wrap("look for locked channels", err)
}
