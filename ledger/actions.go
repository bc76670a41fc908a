package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is something that an operator did by hand, other than a change of the routing, of a ramp
// or of a window, which have records of their own.
type Action struct {
	// ID is that of the row; 0 for a settled ambiguity, which is recorded with the ambiguity.
	ID int64
	At time.Time
	// Author is whom the command or the console was told. Login is that of the database; empty
	// where it was not recorded.
	Author, Login string
	// Name is cancel, pause, resume, replay, test or settle, Subject the id of a message or what it
	// was done to, As what became of it where that was said.
	Name, Subject, As string
	// Reason is for operators: people write numbers into it.
	Reason string
}

// ActionFilter says which actions are meant. The zero value means all.
type ActionFilter struct {
	// Below leaves out the action with this ID and newer ones, for the next page; 0 for none.
	Below int64
	// Recorded leaves out settled ambiguities, which have no ID to begin a page below.
	Recorded bool
}

// Actions lists those that match, limit at most: the newest first, and with Recorded the one with
// the highest ID, because pages begin below an ID and clocks may differ.
func (s *Audits) Actions(ctx context.Context, f *ActionFilter, limit int) ([]Action, error) {
	actions, err := rows(ctx, s.db, pgx.RowToStructByPos[Action], `
		select a.id, a.at, a.author, a.login, a.action, a.subject, a.told, a.reason
		from (
		  select id, at, author, login, action, subject, '' as told, reason
		  from dispatcher.operator_actions
		  where $1::bigint = 0 or id < $1
		  union all
		  select 0, d.closed_at, d.author, '', 'settle', m.id, coalesce(d.verdict, ''), d.note
		  from dispatcher.ambiguous d
		  join facts.stored_messages m on m.seq = d.message_seq
		  where not $2::boolean and d.author <> '' and d.closed_at is not null) a
		order by case when $2 then a.id end desc, a.at desc limit $3`, f.Below, f.Recorded, limit)
	return actions, wrap("list operators' actions", err)
}

// Note records an action of which nothing else in the ledger says who did it. Time and login are the
// database's own.
func (s *Audits) Note(ctx context.Context, a *Action) error {
	_, err := s.hot.Exec(ctx, `
		insert into dispatcher.operator_actions (author, reason, action, subject)
		values ($1, $2, $3, $4)`, storable(a.Author), storable(a.Reason), a.Name, a.Subject)
	return wrap("record an operator's action", err)
}
