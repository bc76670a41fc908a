package primary

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// waitForStandby is the function of the server in which a commit waits for the standby,
// src/backend/replication/syncrep.c. It warns of nothing else; the text of the warning is
// translated, and its code is that of any.
const waitForStandby = "SyncRepWaitForLSN"

// hangUp closes a connection when a commit's wait for the standby was cancelled, by
// pg_cancel_backend for instance. The server answers COMMIT all the same, and says before only in a
// warning that the standby may lack it. To the caller it is a commit whose answer was lost, which
// it is.
func hangUp(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Routine == waitForStandby {
		_ = conn.Close(context.Background()) // it has no more to say
	}
}
