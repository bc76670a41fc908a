package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is something that an operator did by hand, other than a change of the routing, of a ramp
// or of a window, which have records of their own.
type Action struct {
	At time.Time
	// Author is whom the command or the console was told. Login is that of the database; empty
	// where it was not recorded.
	Author, Login string
	// Name is cancel, pause, resume, replay or settle, Subject the id of a message or what it was
	// done to, As what became of it where that was said.
	Name, Subject, As, Reason string
}

// Actions lists the newest actions of operators, limit at most. Reasons are for operators: people
// write numbers into them.
func (s *Audits) Actions(ctx context.Context, limit int) ([]Action, error) {
	return rows(ctx, s.db, pgx.RowToStructByPos[Action], `
		select at, author, login, action, subject, '' as told, reason
		from dispatcher.operator_actions
		union all
		select d.closed_at, d.author, '', 'settle', m.id, coalesce(d.verdict, ''), d.note
		from dispatcher.ambiguous d
		join facts.stored_messages m on m.seq = d.message_seq
		where d.author <> '' and d.closed_at is not null
		order by 1 desc limit $1`, limit)
}
