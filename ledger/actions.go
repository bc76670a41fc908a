package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ActionKind says what an action changed, and so where it is recorded.
type ActionKind string

// The kinds of actions.
const (
	RoutingAction ActionKind = "routing" // a version of the routing
	RampAction    ActionKind = "ramp"    // the steps of ramps are versions of the routing
	WindowAction  ActionKind = "window"  // a limit's window was started again
	BudgetAction  ActionKind = "budget"  // a top-up, or a correction
	GuardAction   ActionKind = "guard"   // a guard found too much traffic
	MessageAction ActionKind = "message" // such as cancel, pause and replay
	OptOutAction  ActionKind = "opt_out" // by hand, not by a word of the subscriber
	ErasureAction ActionKind = "erasure"
)

// ActionKinds are all kinds.
var ActionKinds = []ActionKind{
	RoutingAction, RampAction, WindowAction, BudgetAction, GuardAction, MessageAction, OptOutAction,
	ErasureAction,
}

// Via says how an action came in. Like Author, it is reported by the process that wrote the row.
type Via string

// The ways of actions. Empty means that it was not recorded.
const (
	// ViaCommand is the command line: anybody may give any author, and only the database login was
	// authenticated.
	ViaCommand Via = "command"
	// ViaAPI and ViaConsole authenticate the author, by a token or an issuer.
	ViaAPI     Via = "api"
	ViaConsole Via = "console"
	// ViaTopic is the control topic: the author is the name in the record, and whoever may write to
	// the topic can give any name.
	ViaTopic Via = "control topic"
	// ViaItself stands for what a process did by itself: steps of ramps, health weighting, guards.
	ViaItself Via = "dispatcher"
)

// Action is something that somebody did, or that a guard did by itself.
type Action struct {
	Kind ActionKind
	// ID and Part name the row within its kind.
	ID, Part int64
	At       time.Time
	// Author is the name given to the command or the console. Login is that of the database; empty
	// where it was not recorded.
	Author, Login string
	Via           Via
	// Name is what was done, such as cancel. Subject is the id of a message, or what else was acted
	// on; Detail says more in words.
	Name, Subject, Detail string
	// Reason may contain phone numbers where Private says so, because people write them into it.
	Reason string
}

// Private reports whether the reason is for operators only. The reasons of the other kinds are in
// the views of auditors.
func (a *Action) Private() bool {
	return !slices.Contains([]ActionKind{
		RoutingAction, RampAction, WindowAction, GuardAction,
	}, a.Kind)
}

// ActionFilter selects actions. The zero value selects all.
type ActionFilter struct {
	Kind ActionKind // empty means any
	// After is the last action of the page before; nil for the first page.
	After *Action
}

// selectActions reads actions, newest first. Most kinds are recorded in the table of what they
// change.
//
// An import puts very many numbers on an opt-out list at once, so opt-outs of one minute are one
// action. The first of them gives its id and time, which do not change when more are added.
const selectActions = `
	select a.kind, a.id, a.part, a.at, a.author, coalesce(a.login, ''), a.via, a.name, a.subject,
	  a.detail, a.reason
	from (
	  select 'routing' as kind, version as id, 0::bigint as part, created_at as at, author, login, via,
	    case when base is distinct from version and base is not null then 'effects' else 'apply' end
	      as name, 'version ' || version as subject, '' as detail, reason
	  from dispatcher.routing_versions
	  union all
	  select 'ramp', m.seq, 0, m.at, m.author, m.login, m.via, m.move,
	    'ramp ' || r.id || ' of ' || r.route,
	    'at step ' || m.step || ' of ' || r.steps, m.reason
	  from dispatcher.ramp_moves m join dispatcher.ramps r on r.id = m.ramp where m.move <> 'step'
	  union all
	  select 'window', id, 0, restarted_at, author, login, via, 'restart',
	    concat_ws(' ', nullif(channel, ''), nullif(scope, 'channel'), case window_seconds
	      when 1 then '1s' when 60 then '1m' when 3600 then '1h' when 86400 then '1d'
	      else window_seconds || 's' end, unit), '', reason
	  from dispatcher.limit_restarts
	  union all
	  select 'budget', id, 0, at, author, login, via,
	    case when micros > 0 then 'top_up' else 'correct' end,
	    concat_ws(' ', nullif(channel, ''), nullif(scope, 'channel')),
	    trim_scale(micros / 1000000.0) || ' ' || currency, reason
	  from dispatcher.top_ups
	  union all
	  select 'guard', id, 0, at, 'guard', '', 'dispatcher', action,
	    replace(per, '_', ' ') || ' ' || subject,
	    seen || ' messages in the hour; usual are ' || round(usual::numeric, 1), ''
	  from dispatcher.guard_trips
	  union all
	  select 'message', id, 0, at, author, login, via, action, subject, '', reason
	  from dispatcher.operator_actions
	  union all
	  select 'message', d.message_seq, d.attempt, d.closed_at, d.author, d.login, d.via, 'settle',
	    m.id,
	    'as ' || d.verdict, d.note
	  from dispatcher.ambiguous d join facts.stored_messages m on m.seq = d.message_seq
	  where d.author <> '' and d.closed_at is not null
	  union all
	  select 'opt_out', min(seq), 0, min(since), author, login, source, 'opt_out',
	    case tenant when '' then 'no tenant' else 'tenant ' || tenant end,
	    count(*) || ' by ' || source, reason
	  from dispatcher.opt_outs where source <> 'keyword'
	  group by author, login, tenant, source, reason, date_trunc('minute', since)
	  union all
	  select 'opt_out', min(seq), 1, min(until), ended_author, ended_login, ended_by, 'opt_in',
	    case tenant when '' then 'no tenant' else 'tenant ' || tenant end,
	    count(*) || ' by ' || ended_by, ended_reason
	  from dispatcher.opt_outs where ended_by <> 'keyword'
	  group by ended_author, ended_login, tenant, ended_by, ended_reason, date_trunc('minute', until)
	  union all
	  select 'erasure', id, 0, at, author, login, 'command', 'erase',
	    case when tenant is null then 'all tenants' when tenant = '' then 'no tenant'
	      else 'tenant ' || tenant end,
	    messages || ' messages, ' || parts || ' parts of incoming ones, ' || unended || ' left',
	    reason
	  from dispatcher.erasures
	) a
	where ($1 = '' or a.kind = $1)
	  and ($2 or (a.at, a.kind collate "C", a.id, a.part) < ($3, $4 collate "C", $5, $6))
	order by a.at desc, a.kind collate "C" desc, a.id desc, a.part desc limit $7`

// Actions lists the actions that match, limit at most, newest first.
func (s *Audits) Actions(ctx context.Context, f *ActionFilter, limit int) ([]Action, error) {
	last := f.After
	if last == nil {
		last = &Action{}
	}
	found, err := rows(ctx, s.db, pgx.RowToStructByPos[Action], selectActions,
		string(f.Kind), f.After == nil, last.At, string(last.Kind), last.ID, last.Part, limit)
	for i := range found {
		found[i].At = found[i].At.UTC()
	}
	return found, wrap("list actions", err)
}

// Note records an action whose author is recorded nowhere else in the ledger. The database sets
// time and login.
func (s *Audits) Note(ctx context.Context, a *Action) error {
	_, err := s.hot.Exec(ctx, `
		insert into dispatcher.operator_actions (author, reason, action, subject, via)
		values ($1, $2, $3, $4, $5)`, storable(a.Author), storable(a.Reason), a.Name, a.Subject, a.Via)
	return wrap("record an operator's action", err)
}
