package primary

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// waitForStandby is the function of the server in which a commit waits for the standby,
// src/backend/replication/syncrep.c. All its warnings are about that wait. They are recognised by
// this name, because their text is translated and their code is a general one.
const waitForStandby = "SyncRepWaitForLSN"

// hangUp closes a connection when a commit's wait for the standby was cancelled, for example by
// pg_cancel_backend. The server still answers, and only a warning says that the standby may lack
// the commit. For the caller this must be a commit whose answer was lost.
func hangUp(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Routine == waitForStandby {
		_ = conn.Close(context.Background()) // the connection is given up in any case
	}
}
