package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is something that an operator did by hand. Changes of the routing, of ramps and of windows
// are not among them, because they have records of their own.
type Action struct {
	// ID is that of the row; 0 for a settled ambiguity, which is recorded with the ambiguity.
	ID int64
	At time.Time
	// Author is the name given to the command or the console. Login is that of the database; empty
	// where it was not recorded.
	Author, Login string
	// Name is cancel, pause, resume, replay, test or settle. Subject is the id of a message, or
	// what else was acted on. As is the resolution of a settled ambiguity, else empty.
	Name, Subject, As string
	// Reason may contain phone numbers, because people write them into it. It is for operators only.
	Reason string
}

// ActionFilter selects actions. The zero value selects all.
type ActionFilter struct {
	// Below selects IDs lower than this one, to read the next page; 0 for no bound.
	Below int64
	// Recorded leaves out settled ambiguities, because they have no ID to page by.
	Recorded bool
}

// Actions lists the actions that match, limit at most, newest first. With Recorded they are ordered
// by ID, highest first, because pages begin below an ID and clocks may differ.
func (s *Audits) Actions(ctx context.Context, f *ActionFilter, limit int) ([]Action, error) {
	actions, err := rows(ctx, s.db, pgx.RowToStructByPos[Action], `
		select a.id, a.at, a.author, a.login, a.action, a.subject, a.told, a.reason
		from (
		  select id, at, author, login, action, subject, '' as told, reason
		  from dispatcher.operator_actions
		  where $1::bigint = 0 or id < $1
		  union all
		  select 0, d.closed_at, d.author, coalesce(d.login, ''), 'settle', m.id, coalesce(d.verdict, ''), d.note
		  from dispatcher.ambiguous d
		  join facts.stored_messages m on m.seq = d.message_seq
		  where not $2::boolean and d.author <> '' and d.closed_at is not null) a
		order by case when $2 then a.id end desc, a.at desc limit $3`, f.Below, f.Recorded, limit)
	return actions, wrap("list operators' actions", err)
}

// Note records an action whose author is recorded nowhere else in the ledger. The database sets
// time and login.
func (s *Audits) Note(ctx context.Context, a *Action) error {
	_, err := s.hot.Exec(ctx, `
		insert into dispatcher.operator_actions (author, reason, action, subject)
		values ($1, $2, $3, $4)`, storable(a.Author), storable(a.Reason), a.Name, a.Subject)
	return wrap("record an operator's action", err)
}
