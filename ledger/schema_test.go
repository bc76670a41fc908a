package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// refusal is the name of the constraint that a statement violates; empty if none.
func refusal(t testing.TB, db *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23") {
		return pg.ConstraintName
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func TestTheDatabaseRefusesIllegalTransitions(t *testing.T) {
	t.Parallel()
	db := lend(t).db
	legal := map[string]string{
		"scheduled":   "sending waiting rejected failed",
		"waiting":     "sending retry accepted delivered undelivered rejected failed unknown",
		"retry":       "sending waiting accepted delivered undelivered rejected failed unknown",
		"sending":     "waiting retry accepted delivered undelivered no_receipt rejected failed unknown",
		"accepted":    "delivered undelivered no_receipt",
		"no_receipt":  "delivered undelivered",
		"unknown":     "waiting retry accepted delivered undelivered rejected failed",
		"delivered":   "",
		"undelivered": "delivered",
		"rejected":    "delivered",
		"failed":      "delivered",
		"dead":        "",
	}
	const (
		due      = "scheduled waiting retry"
		finished = "delivered undelivered no_receipt rejected failed unknown dead"
	)
	for from, allowed := range legal {
		for to := range legal {
			execute(t, db, `begin`)
			store(t, db, "id, lane, attempts, state, next_at, finished_at",
				`values ('m', 'otp', 1, $1, case when $2 then now() end, case when $3
				  then now() end)`,
				from, strings.Contains(due, from), strings.Contains(" "+finished+" ", " "+from+" "))
			got := refusal(t, db, `update dispatcher.messages set state = $1, next_at = case when $2
				then now() end, finished_at = case when $3 then now() end`,
				to, strings.Contains(due, to), strings.Contains(" "+finished+" ", " "+to+" "))
			execute(t, db, `rollback`)
			want := "messages_legal_transition"
			if from == to || strings.Contains(" "+allowed+" ", " "+to+" ") {
				want = ""
			}
			if got != want {
				t.Errorf("from %s to %s: refused by %q, want %q", from, to, got, want)
			}
		}
	}
	// accepted, with a time to go on without a receipt
	store(t, db, "id, lane, attempts, state, next_at", `values ('m', 'otp', 1, 'accepted', now())`)
	if got := refusal(t, db, `update dispatcher.messages set state = 'sending', next_at = null`); got != "" {
		t.Errorf("refused by %q", got)
	}
}

func TestTheDatabaseRefusesBrokenInvariants(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 3, Limits: append(day(5).Limits,
		scoped(tenant("x"), admission.Day, 5), budget(tenant("x"), 5))})
	claimAll(t, l, batch("m", 2), "a")
	startRamp(t, l, ramp("default"))
	db := rig.db
	execute(t, db, ledgertest.StoreOpen)
	today := scalar[string](t, db, `select to_char(now() at time zone 'UTC', 'YYYYMMDD')`)
	for sql, want := range map[string]string{
		`insert into dispatcher.cursors
			values ('r', 'a', -1)`: "cursors_position",
		`insert into dispatcher.cursors
			values ('r', '', 0)`: "cursors_position",
		`insert into dispatcher.cursors
			values ('r', '', -2)`: "cursors_position",
		`update dispatcher.routing_versions
			set base = 2`: "routing_versions_base",
		`update dispatcher.routing_versions
			set base = 0`: "routing_versions_base",
		`update dispatcher.routing_versions
			set effects = '{}'`: "routing_versions_effects",
		`update dispatcher.routing_versions
			set effects = '{}', base = null`: "routing_versions_effects",
		`update dispatcher.ramps
			set state = 'lost', next_at = null`: "ramps_state_check",
		`update dispatcher.ramps
			set step = steps + 1`: "ramps_step",
		`update dispatcher.ramps
			set step = steps, version = 1`: "ramps_done",
		`update dispatcher.ramps
			set state = 'done', next_at = null`: "ramps_done",
		`update dispatcher.ramps
			set next_at = null`: "ramps_next_at",
		`update dispatcher.ramps
			set state = 'held', held = 'errors'`: "ramps_next_at",
		`update dispatcher.ramps
			set state = 'held', next_at = null`: "ramps_held",
		`update dispatcher.ramps
			set held = 'errors'`: "ramps_held",
		`update dispatcher.ramps
			set step = 1`: "ramps_version",
		`update dispatcher.ramps
			set max_errors = 'NaN'`: "ramps_max_errors_check",
		`update dispatcher.ramps
			set from_weights = '[]'`: "ramps_from_weights_check",
		`update dispatcher.limits
			set granted = max + 1`: "limits_granted",
		`update dispatcher.limits set granted = max + 1 where scope = 'tenant:x'
			and unit = 'money'`: "limits_granted",
		`update dispatcher.limits set granted = max + 1 where scope = 'tenant:x'
			and unit = 'messages'`: "limits_granted",
		`update dispatcher.limits
			set unit = 'lines' where currency is null`: "limits_unit_check",
		`update dispatcher.limits set currency = 'GBP'
			where unit = 'messages'`: "limits_currency",
		`update dispatcher.limits
			set currency = null`: "limits_currency",
		`update dispatcher.limits
			set channel = ''`: "limits_scope",
		`update dispatcher.limits
			set taken = '[]'`: "limits_taken",
		`update dispatcher.channels
			set ease_rate = 0, ease_since = now()`: "channels_ease",
		`update dispatcher.channels
			set ease_rate = 1.5, ease_since = now()`: "channels_ease",
		`update dispatcher.channels
			set ease_since = now()`: "channels_eased",
		`update dispatcher.attempts
			set held_until = now()`: "attempts_held",
		`update dispatcher.attempts
			set receipt_state = 'pending'`: "attempts_receipt_state",
		`update dispatcher.attempts
			set receipt_state = 'delivered'`: "attempts_delivered_at",
		`update dispatcher.attempts
			set delivered_at = now()`: "attempts_delivered_at",
		`insert into dispatcher.receipts (channel, reference, state)
			values ('a', 'r', 'expecting')`: "receipts_received_at",
		`insert into dispatcher.receipts (channel, reference, state)
			values ('a', 'r', 'pending')`: "receipts_received_at",
		`insert into dispatcher.receipts (channel, reference, due_at)
			values ('a', 'r', now())`: "receipts_due_at",
		`insert into dispatcher.receipts (channel, reference, look_at)
			values ('a', 'r', now())`: "receipts_look_at",
		`insert into dispatcher.receipts (channel, reference, part)
			values ('a', 'r', 1)`: "receipts_part",
		`insert into dispatcher.receipts (channel, reference, message_seq)
			values ('a', 'r', 1)`: "receipts_attempt",
		`insert into dispatcher.receipts (channel, reference, cause)
			values ('a', 'r', 'absent')`: "receipts_cause",
		`update dispatcher.messages
			set waits = '{}'`: "messages_waits",
		`update dispatcher.instances
			set counts = '[]'`: "instances_counts",
		`update dispatcher.limits
			set granted = -1`: "limits_granted",
		`update dispatcher.limits
			set max = max + 1`: "limits_max",
		`update dispatcher.channels
			set active = active_max + 1`: "channels_active",
		`update dispatcher.channels
			set active = -1`: "channels_active",
		`update dispatcher.messages
			set next_at = now()`: "messages_next_at",
		`update dispatcher.messages
			set finished_at = now()`: "messages_finished_at",
		`update dispatcher.messages
			set state = 'accepted', finished_at = now()`: "messages_finished_at",
		`update dispatcher.messages
			set attempts = 0`: "messages_sending",
		`update dispatcher.messages
			set draw = draw_size`: "messages_draw",
		`update dispatcher.messages
			set id = repeat('x', 65)`: "messages_id_length",
		`update dispatcher.messages
			set id = ''`: "messages_id_length",
		`update dispatcher.messages
			set state = 'lost'`: "messages_state_check",
		`update dispatcher.attempts
			set outcome = 'accepted', answers = 1`: "attempts_settled_at",
		`update dispatcher.attempts
			set outcome = 'unknown', settled_at = now()`: "attempts_answers",
		`update dispatcher.attempts
			set reason = 'whim'`: "attempts_reason_check",
		`insert into dispatcher.attempts select *
			from dispatcher.all_attempts`: "attempts_" + today + "_pkey",
		`insert into dispatcher.outbox (kind, keys, "values")
			values ('status', '{a,b}', '{x}')`: "outbox_lengths",
	} {
		// A refused state may be refused by the transition first; the constraint is what matters here.
		if got := refusal(t, db, sql); got != want && (want != "messages_state_check" ||
			got != "messages_legal_transition") {
			t.Errorf("%s: refused by %q, want %q", sql, got, want)
		}
	}
}

func TestADeadRowMayHaveALongID(t *testing.T) {
	t.Parallel()
	l := open(t)
	m := message(strings.Repeat("x", 300))
	m.State, m.Reason, m.Plan = ledger.Dead, "no_id", ledger.Plan{}
	nothing := func(seen *ledger.Seen) (ledger.Decisions, error) {
		return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Messages: []ledger.Message{m}},
		nothing); err != nil {
		t.Fatal(err)
	}
	r, err := l.Messages.Record(t.Context(), m.ID)
	if err != nil || r.Message.State != ledger.Dead || r.FinishedAt.IsZero() || r.Routing != nil {
		t.Errorf("state %s, finished %s, %v", r.Message.State, r.FinishedAt, err)
	}
}

// The columns of the contract with auditors, in its order.
func TestAuditViewsHaveTheColumnsOfTheContract(t *testing.T) {
	t.Parallel()
	db := lend(t).db
	rows, err := db.Query(t.Context(), `
		select table_name, string_agg(column_name, ' ' order by ordinal_position)
		from information_schema.columns where table_schema = 'audit' group by 1`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var view, columns string
	if _, err := pgx.ForEachRow(rows, []any{&view, &columns}, func() error {
		got[view] = columns
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"messages": "id lane tenant route routing_version draw draw_size draw_key_id " +
			"first_choice state segments alphabet " +
			"received_at finished_at topic kafka_partition kafka_offset possible_duplicate " +
			"calling_code number_hmac envelope_hmac sender seq",
		"attempts": "message_id attempt channel reason outcome provider_reference provider_code " +
			"segments price_micros currency " +
			"claimed_at settled_at delivered_at ticket_bucket ticket_accepted_at " +
			"ticket_last_check_in counted_at " +
			"receipt_state receipt_cause receipt_code receipt_at unfit contradicted_at ranking seq",
		"weights": "version route mode fallback lowest_first place channel weight " +
			"effective_weight sticky",
		"receipts":    "message_id attempt part channel reference state cause code received_at seq",
		"guard_trips": "id at per subject action hour seen usual days times at_least version",
		"top_ups":     "id at login author channel scope currency micros before granted key via",
		"limit_restarts": "channel scope window_seconds unit restarted_at version author " +
			"reason was_start was_granted window_start granted set_aside login via",
		"limit_windows": "channel scope window_seconds window_start unit max granted " +
			"reserved currency next_at since until",
		"active":    "channel max active",
		"draw_keys": "draw_key_id first_at last_at messages",
		"attempt_figures": "day revision hour routing_version route channel reason currency " +
			"tenant calling_code attempts submitted accepted rejected refused throttled unknown " +
			"unsent pending delivered undelivered no_receipt segments cost_micros " +
			"unknown_segments unknown_micros delivered_segments delivered_micros sender",
		"carried_figures": "day revision hour routing_version route first_choice channel cause " +
			"tenant calling_code messages sender currency segments cost_micros text_segments",
		"choice_figures": "day revision hour routing_version route channel tenant calling_code " +
			"messages rejected failed unknown open segments sender cause",
		"choice_sums": "day revision split hour tenant calling_code sender routing_version route " +
			"channel cause messages rejected failed unknown open segments",
		"attempt_sums": "day revision split hour tenant calling_code sender routing_version route " +
			"channel reason currency attempts submitted accepted rejected refused throttled unknown " +
			"unsent pending delivered undelivered no_receipt segments cost_micros unknown_segments " +
			"unknown_micros delivered_segments delivered_micros",
		"carried_sums": "day revision split hour tenant calling_code sender routing_version route " +
			"first_choice channel cause currency messages segments cost_micros text_segments",
		"closings": "day revision zone from_at to_at at changes figures",
		"seals": "number from_at to_at at again size leaves nodes checkpoint closings " +
			"finance_from format definitions",
		"ambiguous": "message_id attempt last_attempt channel step opened_at until asked " +
			"closed_at verdict author note login via seq",
		"erasures":         "at author tenant number_hmac messages parts unended login",
		"operator_actions": "id at login author action subject via",
		"dead_records": "id lane tenant reason detail received_at topic kafka_partition " +
			"kafka_offset replayed_at replayed_by replayed_as replayed_via",
		"opt_outs": "tenant since source channel author until ended_by ended_channel ended_author " +
			"login ended_login id",
		"ramp_moves":       "ramp route at author move step steps version reason login via",
		"routing_versions": "version author reason created_at document effects base login via",
		"reconciliations": "id channel file_digest from_at to_at revision complete at author login " +
			"reason lines matched ours_only theirs_only differences ambiguous resolved",
		"reconciliation_differences": "reconciliation kind message_id attempt line reference at " +
			"ours theirs currency",
		"reconciliation_totals": "reconciliation currency ours_micros theirs_micros",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAuditViewsShowNoNumberAndNoText(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, day(10))
	s := accepted(claimAll(t, l, batch("m", 3), "a").Messages)
	for i := range s {
		s[i].Await = time.Hour
	}
	settleAll(t, l, s)
	for _, view := range []string{
		"messages", "attempts", "receipts", "limit_windows", "active",
		"routing_versions",
	} {
		all := scalar[string](t, db, `select coalesce(string_agg(v::text, ' '), '') from audit.`+
			view+` v`)
		if all == "" || strings.Contains(all, "447700900123") ||
			strings.Contains(all, "Your code") {
			t.Errorf("audit.%s shows %q", view, all)
		}
	}
}

func TestWorkIsFoundThroughIndexes(t *testing.T) {
	t.Parallel()
	db := raw(t, ledgertest.Fresh(t))
	store(t, db, "id, lane, kafka_offset, attempts, state, next_at", `
		select 'm' || n, 'otp', n, 0, case when n % 100 = 0 then 'waiting' else 'scheduled' end,
		  now() + (n - 200) * interval '1 second'
		from generate_series(1, 5000) n`)
	execute(t, db, `
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments,
		  price_micros, currency, claimed_at, instance)
		select seq, 1, 'a', 'first_choice', 1, 0, 'GBP', now() - kafka_offset * interval '1 second', 1
		from dispatcher.messages`)
	execute(t, db, `analyze`)
	for sql, index := range map[string]string{
		`select seq from dispatcher.due where next_at <= now() order by next_at
			limit 100 for update skip locked`: "due_next_at",
		`select tenant, next_at from dispatcher.due where lane = 'otp'
			and tenant > 'x' order by tenant, next_at limit 1`: "due_turns",
		`select lane, count(*) from dispatcher.due where state not in ('scheduled', 'accepted')
			and reason is distinct from 'paused'
			and reason is distinct from 'quiet_hours' group by lane`: "due_waiting",
		`select * from dispatcher.all_attempts where claimed_at between now() - interval '1 minute'
			and now()`: "_claimed_at_idx",
	} {
		if got := ledger.PlanOf(t, db, sql); !strings.Contains(got, index) {
			t.Errorf("%s does not use %s:\n%s", sql, index, got)
		}
	}
}

// TestNoAnswerRewritesAnIndex: the updates of an attempt by its settlement and its receipt fit into
// its page, and its message is not updated at all. The test runs alone, because open transactions
// of other tests in the same server delay the removal of old row versions.
func TestNoAnswerRewritesAnIndex(t *testing.T) {
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url, MaxConns: 1}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	var receipts []ledger.Receipt
	for _, prefix := range []string{"reference-a", "reference-b", "reference-c"} {
		s := accepted(claimAll(t, l, batch(prefix, 500), "a").Messages)
		for i := range s {
			s[i].Await = time.Hour
			receipts = append(receipts, receipt(s[i].Reference, provider.Delivered))
		}
		settleAll(t, l, s)
	}
	for some := range slices.Chunk(receipts, 500) {
		receive(t, l, some...)
	}
	l.Close() // a session reports its statistics at its end, at the latest
	updates := func(table string) (all, hot float64) {
		if err := db.QueryRow(t.Context(),
			`select coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0)
			from pg_stat_user_tables where starts_with(relname, $1)`, table+"_").
			Scan(&all, &hot); err != nil {
			t.Fatal(err)
		}
		return all, hot
	}
	var all, hot float64
	for all == 0 && t.Context().Err() == nil {
		all, hot = updates("attempts")
	}
	if hot/all < 0.97 {
		t.Errorf("attempts: %.0f of %.0f updates were heap-only", hot, all)
	}
	if all, _ := updates("messages"); all != 0 {
		t.Errorf("%.0f messages were rewritten", all)
	}
}
