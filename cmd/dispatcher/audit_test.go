package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/provider"
)

// auditKey is the key file of these tests.
var auditKey = strings.Repeat("0a", 32)

// fixedCarrier gives every submit the same answer.
type fixedCarrier struct {
	unready string
	outcome provider.Outcome
}

func (c fixedCarrier) Send(_ context.Context, s provider.Submission) provider.Result {
	return provider.Result{Outcome: c.outcome, Code: "scripted", Reference: "ref-" + s.ID}
}
func (c fixedCarrier) Ready() (ok bool, why string) { return c.unready == "", c.unready }
func (fixedCarrier) Close(context.Context) error    { return nil }

// auditDB is a database with messages that the pipeline sent: some under version 1, others under
// version 2, which has other weights. Channel a was never connected, b refused everything, c
// accepted everything.
type auditDB struct {
	t      *testing.T
	zone   string // of the business day
	ledger *ledger.Ledger
	sql    *pgx.Conn
	env    []string
}

// emptyAuditDB returns a database without messages and without routing.
func emptyAuditDB(t *testing.T) *auditDB {
	t.Helper()
	tier.OneWindow(t, 24*time.Hour)
	url := ledgertest.URL(t)
	l, err := ledger.Connect(t.Context(), ledger.Config{
		URL: ledgertest.As(migrations.RoleApp, url), Region: "test", MaxConns: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	sql, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		// Without the tables that the test made, the database serves the next test.
		_, _ = sql.Exec(ctx, `do $$ declare one name; begin
			for one in select tablename from pg_tables where schemaname = 'public' loop
			  execute format('drop table public.%I', one);
			end loop; end $$`)
		_ = sql.Close(ctx)
	})
	return &auditDB{t: t, zone: "Europe/London", ledger: l, sql: sql, env: []string{
		"DISPATCHER_POSTGRES_URL=" + url,
		"DISPATCHER_DRAW_KEY_FILE=" + write(t, "draw.key", auditKey),
	}}
}

// filledAuditDB sends n messages under each version.
func filledAuditDB(t *testing.T, n int) *auditDB {
	t.Helper()
	o := emptyAuditDB(t)
	o.sendBoth(n)
	return o
}

// sendBoth sends n messages under each of the two versions.
func (o *auditDB) sendBoth(n int) {
	o.t.Helper()
	for i, weights := range []string{"a: 25, b: 15, c: 60", "a: 30, b: 20, c: 50"} {
		o.send(fmt.Sprintf("v%d", i+1),
			strings.Replace(testRouting, "a: 25, b: 15, c: 60", weights, 1), n)
		if i == 0 { // all of this happened some time ago
			o.exec(`
				update dispatcher.routing_versions set created_at = created_at - interval
				'10 seconds'`)
			o.exec(`
				update dispatcher.messages set received_at = received_at - interval '10 seconds'`)
			o.exec(`update dispatcher.attempts set claimed_at = claimed_at - interval '10 seconds',
				settled_at = settled_at - interval '10 seconds',
				ranking = case when ranking ? 'latest' then jsonb_set(ranking, '{latest}',
				to_jsonb((ranking->>'latest')::bigint - 10000000)) else ranking end`)
		}
	}
	o.exec(`
		update dispatcher.routing_versions set created_at = created_at - interval '5 seconds'
		where version = 2`)
}

// send applies a document and sends n messages under it with a pipeline of its own.
func (o *auditDB) send(story, document string, n int) {
	o.t.Helper()
	defer o.exec(ledgertest.StoreOpen)
	ctx := o.t.Context()
	document = strings.Replace(document, "Europe/London", o.zone, 1)
	doc, err := config.ParseApplied("test", []byte(document))
	if err != nil {
		o.t.Fatal(err)
	}
	version, err := o.ledger.Routing.Apply(ctx, app.NewRouting(doc, nil, "ann", "agreed", nil))
	if err != nil {
		o.t.Fatal(err)
	}
	stored, err := o.ledger.Routing.Version(ctx, version)
	if err != nil {
		o.t.Fatal(err)
	}
	inForce, err := control.StoredRouting(&stored)
	if err != nil {
		o.t.Fatal(err)
	}
	routing, err := app.Compile(inForce, version)
	if err != nil {
		o.t.Fatal(err)
	}
	keys, err := config.DrawKeys(write(o.t, "draw.key", auditKey))
	if err != nil {
		o.t.Fatal(err)
	}
	d, err := pipeline.New(pipeline.Config{
		Ledger: o.ledger, Keys: keys, MaxUnsettled: 500, SendTimeout: 5 * time.Second,
		DeadAfter: time.Minute,
		Metrics:   pipeline.NewMetrics(prometheus.NewRegistry()),
		Reload: func(context.Context) error {
			return nil
		},
		Trouble: func(where string, err error) { o.t.Logf("%s: %v", where, err) },
	})
	if err != nil {
		o.t.Fatal(err)
	}
	carriers := map[string]provider.Channel{
		"a": fixedCarrier{unready: "connecting"}, "b": fixedCarrier{outcome: provider.Refused},
		"c": fixedCarrier{outcome: provider.Accepted},
	}
	if err := d.Apply(routing, carriers); err != nil {
		o.t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { d.Run(running); close(done) }()
	if err := d.Handle(ctx, auditJobs(story, n), nil); err != nil {
		o.t.Fatal(err)
	}
	for {
		var open int
		err := o.sql.QueryRow(ctx,
			`select count(*) from dispatcher.message_states where state <> 'accepted'`).Scan(&open)
		if err != nil {
			o.t.Fatal(err)
		}
		if open == 0 {
			break
		}
		o.exec(`select pg_sleep(0.02)`)
	}
	stop()
	<-done
	if err := d.Stop(ctx); err != nil {
		o.t.Fatal(err)
	}
}

func auditJobs(story string, n int) []decide.Job {
	jobs := make([]decide.Job, n)
	for i := range jobs {
		m := envelope.Message{
			ID: fmt.Sprintf("%s-%06d", story, i), To: "+447700900123", Text: "Your code is 123456",
		}
		jobs[i] = decide.Job{Message: m, Raw: m.Append(nil), Lane: "otp", Produced: time.Now()}
	}
	return jobs
}

func (o *auditDB) exec(sql string, args ...any) {
	o.t.Helper()
	if _, err := o.sql.Exec(o.t.Context(), sql, args...); err != nil {
		o.t.Fatalf("%s: got error %v", sql, err)
	}
}

// verify runs "audit verify".
func (o *auditDB) verify(args ...string) (verification, int) {
	o.t.Helper()
	got := dispatcher(o.t, "", o.env,
		append([]string{"audit", "verify", "--format", "json"}, args...)...)
	var v verification
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		o.t.Fatalf("%v in %+v", err, got)
	}
	return v, got.code
}

// pick returns a message of version 2 that no case has changed yet and whose first attempt matches
// where.
func (o *auditDB) pick(used map[string]bool, where string) (id string, seq int64) {
	o.t.Helper()
	rows, err := o.sql.Query(o.t.Context(), `
		select m.id, m.seq from dispatcher.messages m join dispatcher.all_attempts a on a.message_seq =
		m.seq and a.attempt = 1
		where m.routing_version = 2 and `+where+` order by m.id`)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&id, &seq); err != nil {
			o.t.Fatal(err)
		}
		if !used[id] {
			used[id] = true
			return id, seq
		}
	}
	o.t.Fatalf("no unused message matches %s: %v", where, rows.Err())
	return "", 0
}

// TestAuditVerifyFindsWhateverIsChangedByHand changes one message after another directly in the
// database. Each change is reported under its kind, and no other message is reported.
func TestAuditVerifyFindsWhateverIsChangedByHand(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 300)
	v, code := o.verify()
	if code != exitOK || v.Checked != 600 || v.Mismatched != 0 || v.Attempts < 650 {
		t.Fatalf("before anything was changed: %d %+v", code, v)
	}
	if v, code := o.verify("--sample", "50"); code != exitOK || v.Checked != 50 {
		t.Errorf("of a sample of 50: %d %+v", code, v)
	}
	out := dispatcher(t, "", o.env, "audit", "verify").out
	if !strings.Contains(out, "600 messages") || !strings.Contains(out, "as it is on record") {
		t.Error(out)
	}
	const (
		drawn    = `m.attempts = 1 and a.ranking is null`
		fallback = `m.attempts = 1 and a.ranking is not null`
		refused  = `m.attempts = 2 and a.outcome = 'refused'`
	)
	used, want := map[string]bool{}, map[string]string{}
	for _, tamper := range []struct{ where, what, sql string }{
		{
			drawn, "draw",
			`update dispatcher.messages set draw = (draw + 1) % draw_size where seq = $1`,
		},
		{drawn, "size", `update dispatcher.messages set draw_size = draw_size + 1 where seq = $1`},
		{drawn, "first_choice", `update dispatcher.messages set first_choice = 'b' where seq = $1`},
		{
			drawn, "draw_key",
			`update dispatcher.messages set draw_key_id = '00000000' where seq = $1`,
		},
		{drawn, "route", `update dispatcher.messages set route = null where seq = $1`},
		{drawn, "segments", `update dispatcher.messages set segments = 2 where seq = $1`},
		{drawn, "alphabet", `update dispatcher.messages set alphabet = 'ucs2' where seq = $1`},
		{drawn, "envelope", `update dispatcher.payloads set envelope = 'x' where seq = $1`},
		{ // another text of the same length and price
			drawn, "envelope_hmac",
			`
				update dispatcher.payloads set envelope = convert_to(replace(
				convert_from(envelope, 'UTF8'), '123456', '654321'), 'UTF8') where seq = $1`,
		},
		{drawn, "version", `update dispatcher.messages set routing_version = 1 where seq = $1`},
		{drawn, "version", `update dispatcher.messages set routing_version = 77 where seq = $1`},
		{drawn, "attempt", `delete from dispatcher.attempts where message_seq = $1`},
		{
			refused, "attempt",
			`delete from dispatcher.attempts where message_seq = $1 and attempt = 2`,
		},
		{
			refused, "attempt",
			`delete from dispatcher.attempts where message_seq = $1 and attempt = 1`,
		},
		{
			drawn, "channel",
			`
				update dispatcher.attempts set channel = 'a', price_micros = 31000
				where message_seq = $1`,
		},
		{
			drawn, "price",
			`update dispatcher.attempts set price_micros = price_micros - 1 where message_seq = $1`,
		},
		{
			drawn, "segments",
			`update dispatcher.attempts set segments = 0, price_micros = 0 where message_seq = $1`,
		},
		{
			drawn, "currency",
			`update dispatcher.attempts set currency = 'EUR' where message_seq = $1`,
		},
		{
			drawn, "reason",
			`update dispatcher.attempts set reason = 'fallback' where message_seq = $1`,
		},
		{
			refused, "reason",
			`
				update dispatcher.attempts set reason = 'resend' where message_seq = $1
				and attempt = 2`,
		},
		{
			refused, "outcome",
			`
				update dispatcher.attempts set outcome = 'accepted' where message_seq = $1
				and attempt = 1`,
		},
		{
			drawn, "outcome",
			`update dispatcher.attempts set outcome = 'rejected' where message_seq = $1`,
		},
		{
			drawn, "time",
			`
				update dispatcher.attempts set claimed_at = claimed_at - interval '3 hours'
				where message_seq = $1`,
		},
		{
			drawn, "time",
			`
				update dispatcher.attempts set claimed_at = claimed_at + interval '200 days'
				where message_seq = $1`,
		},
		{
			fallback, "channel",
			`update dispatcher.attempts set ranking = null where message_seq = $1`,
		},
		{
			fallback, "ranking",
			`update dispatcher.attempts set ranking = '[]' where message_seq = $1`,
		},
		{
			fallback, "ranking",
			`
				update dispatcher.attempts set ranking = ranking || '{"cursor": "b"}'
				where message_seq = $1`,
		},
		{
			fallback, "ranked_by",
			`
				update dispatcher.attempts set ranking = ranking || '{"by": "wait"}'
				where message_seq = $1`,
		},
		{
			fallback, "candidates",
			`
				update dispatcher.attempts set ranking = replace(ranking::text, '"line": "a ',
				'"line": "x ')::jsonb where message_seq = $1`,
		},
		{
			fallback, "passed_over",
			`
				update dispatcher.attempts set ranking = replace(ranking::text, 'connecting',
				'i_like_b')::jsonb where message_seq = $1`,
		},
		{
			fallback, "passed_over",
			`
				update dispatcher.attempts set ranking = replace(ranking::text, 'connecting',
				'no_slot')::jsonb where message_seq = $1`,
		},
		{
			refused, "passed_over",
			`
				update dispatcher.attempts set ranking = replace(ranking::text, 'already_tried',
				'connecting')::jsonb where message_seq = $1 and attempt = 2`,
		},
	} {
		id, seq := o.pick(used, tamper.where)
		want[id] = tamper.what
		o.exec(tamper.sql, seq)
	}
	v, code = o.verify()
	if code != exitFailed || v.Checked != 600 {
		t.Errorf("exit code %d, %d messages checked", code, v.Checked)
	}
	found, total := map[string][]string{}, 0
	for _, m := range v.Mismatches {
		found[m.ID] = append(found[m.ID], m.What)
	}
	for _, n := range v.ByKind {
		total += n
	}
	if total != v.Mismatched || len(v.Mismatches) != total {
		t.Errorf("%d by kind, %d listed, %d in all", total, len(v.Mismatches), v.Mismatched)
	}
	for id, what := range want {
		if !slices.Contains(found[id], what) {
			t.Errorf("changed %s of %s, got findings %v", what, id, found[id])
		}
	}
	for id := range maps.Keys(found) {
		if want[id] == "" {
			t.Errorf("%s was not changed, but got findings %v", id, found[id])
		}
	}
	out = dispatcher(t, "", o.env, "audit", "verify").out
	if !strings.Contains(out, "2 envelope") && !strings.Contains(out, "1 envelope") {
		t.Errorf("no count by kind in\n%s", out)
	}
}

// TestAuditVerifyFindsAVersionWhoseRoutesAreNotThoseOfItsDocument: otherwise audit.weights would
// show weights that no draw used.
func TestAuditVerifyFindsAVersionWhoseRoutesAreNotThoseOfItsDocument(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 20)
	o.exec(`update dispatcher.routing_versions
		set routes = jsonb_set(routes, '{0,weights,2}', '"40"') where version = 2`)
	v, code := o.verify()
	if code != exitFailed || v.ByKind["version"] != 20 || v.Mismatched != 20 ||
		!strings.Contains(v.Mismatches[0].Derived, "routes") {
		t.Errorf("%d: got %+v", code, v)
	}
}

// TestAuditVerifyWorksOnADayWithoutPayloads: it reports what it could not check, and finds every
// change that can be found without number and text.
func TestAuditVerifyWorksOnADayWithoutPayloads(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 200)
	o.exec(`delete from dispatcher.payloads p using dispatcher.messages m
		where m.seq = p.seq and m.id like 'v1-%'`)
	if v, code := o.verify(); code != exitOK || v.WithoutPayload.Messages != 200 ||
		v.Checked != 400 || v.Mismatched != 0 {
		t.Fatalf("with half of the payloads: %d %+v", code, v)
	}
	o.exec(`truncate dispatcher.payloads`)
	var hashes []string // the hash of the guide, computed with openssl
	if err := o.sql.QueryRow(t.Context(), `select array_agg(distinct calling_code || ' ' ||
		to_hex(number_hmac)) from audit.messages`).Scan(&hashes); err != nil ||
		!slices.Equal(hashes, []string{"44 4a3ce0de8bea37f8"}) {
		t.Errorf("the numbers are %v, %v", hashes, err)
	}
	v, code := o.verify()
	if code != exitOK || v.Checked != 400 || v.Mismatched != 0 || v.WithoutPayload.Messages != 400 {
		t.Fatalf("before anything was changed: %d %+v", code, v)
	}
	for _, what := range []string{
		"route", "segments", "alphabet", "calling_code", "number_hmac", "envelope_hmac", "passed_over",
	} {
		if n := v.WithoutPayload.NotChecked[what]; n != 400 {
			t.Errorf("%s was not checked of %d messages", what, n)
		}
	}
	out := dispatcher(t, "", o.env, "audit", "verify").out
	if !strings.Contains(out, "every choice is as it is on record\n400 messages whose payload is "+
		"gone: not checked were route match; segments; alphabet; selectors, senders and price") {
		t.Error(out)
	}
	const (
		drawn    = `m.attempts = 1 and a.ranking is null`
		fallback = `m.attempts = 1 and a.ranking is not null`
		refused  = `m.attempts = 2 and exists (select from dispatcher.all_attempts b
			where b.message_seq = m.seq and b.ranking::text like '%already_tried%')`
	)
	used, want := map[string]bool{}, map[string]string{}
	for _, tamper := range []struct{ where, what, sql string }{
		{drawn, "draw", `update dispatcher.messages
			set draw = (draw + 1) % draw_size where seq = $1`},
		{drawn, "size", `update dispatcher.messages set draw_size = draw_size + 1 where seq = $1`},
		{drawn, "first_choice", `update dispatcher.messages set first_choice = 'b' where seq = $1`},
		{drawn, "draw_key", `update dispatcher.messages
			set draw_key_id = '00000000' where seq = $1`},
		{drawn, "route", `update dispatcher.messages set route = 'none' where seq = $1`},
		{drawn, "segments", `update dispatcher.messages set segments = 2 where seq = $1`},
		{drawn, "version", `update dispatcher.messages set routing_version = 1 where seq = $1`},
		{drawn, "version", `update dispatcher.messages set routing_version = 77 where seq = $1`},
		{drawn, "attempt", `delete from dispatcher.attempts where message_seq = $1`},
		{drawn, "channel", `update dispatcher.attempts
			set channel = 'a', price_micros = 31000 where message_seq = $1`},
		{drawn, "price", `update dispatcher.attempts
			set price_micros = price_micros - 1 where message_seq = $1`},
		{drawn, "currency", `update dispatcher.attempts
			set currency = 'EUR' where message_seq = $1`},
		{drawn, "reason", `update dispatcher.attempts
			set reason = 'fallback' where message_seq = $1`},
		{drawn, "outcome", `update dispatcher.attempts
			set outcome = 'rejected' where message_seq = $1`},
		{drawn, "time", `update dispatcher.attempts
			set claimed_at = claimed_at - interval '3 hours' where message_seq = $1`},
		{fallback, "candidates", `update dispatcher.attempts set ranking = replace(ranking::text,
			'"line": "a ', '"line": "x ')::jsonb where message_seq = $1`},
		{fallback, "passed_over", `update dispatcher.attempts set ranking = replace(ranking::text,
			'connecting', 'no_slot')::jsonb where message_seq = $1`}, // the channel has no such limit
		{refused, "passed_over", `update dispatcher.attempts set ranking = replace(ranking::text,
			'already_tried', 'connecting')::jsonb where message_seq = $1 and attempt = 2`},
	} {
		id, seq := o.pick(used, tamper.where)
		want[id] = tamper.what
		o.exec(tamper.sql, seq)
	}
	v, code = o.verify()
	found := map[string][]string{}
	for _, m := range v.Mismatches {
		found[m.ID] = append(found[m.ID], m.What)
	}
	if code != exitFailed || len(found) != len(want) {
		t.Errorf("exit code %d, differences of %d messages, %d were changed", code, len(found),
			len(want))
	}
	for id, what := range want {
		if !slices.Contains(found[id], what) {
			t.Errorf("changed %s of %s, got findings %v", what, id, found[id])
		}
	}
}

// TestAuditVerifyWorksWithoutKeys: finance has no keys. Without them a changed draw is found only
// if it lies in the interval of another channel.
func TestAuditVerifyWorksWithoutKeys(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 100)
	o.env = o.env[:1]
	if got := dispatcher(t, "", o.env, "audit", "verify"); got.code != exitUsage ||
		!strings.Contains(got.err, "DISPATCHER_DRAW_KEY_FILE is missing") ||
		!strings.Contains(got.err, "--without-keys") {
		t.Errorf("without keys and flag: %+v", got)
	}
	verify := func() verification {
		return decoded[verification](t, dispatcher(t, "", o.env, "audit", "verify", "--without-keys",
			"--format", "json"))
	}
	if v := verify(); v.Checked != 200 || v.Mismatched != 0 || v.WithoutKey != 200 {
		t.Errorf("before anything was changed: %+v", v)
	}
	if got := dispatcher(t, "", o.env, "audit", "verify", "--without-keys"); got.code != exitOK ||
		!strings.Contains(got.out, "\n200 messages were not drawn again: no keys\n") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "\n200 messages were not drawn again: no keys\n")
	}
	const drawn = `m.attempts = 1 and a.ranking is null`
	used, want := map[string]bool{}, map[string]string{}
	for what, sql := range map[string]string{
		"first_choice": `update dispatcher.messages set draw = 0 where seq = $1`, // that of a
		"size":         `update dispatcher.messages set draw_size = draw_size + 1 where seq = $1`,
		"price": `update dispatcher.attempts
			set price_micros = price_micros - 1 where message_seq = $1`,
	} {
		id, seq := o.pick(used, drawn)
		want[id] = what
		o.exec(sql, seq)
	}
	// Forged receipts. The last one looks like a late receipt, so nothing contradicts it.
	const made = `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state,
		received_at) select %s, 'delivered', %s from dispatcher.all_attempts a where a.message_seq = $1`
	const says = `update dispatcher.attempts set receipt_state = 'delivered', receipt_at = now(),
		delivered_at = %s where message_seq = $1`
	for _, sql := range [][]string{
		{"one of an attempt", fmt.Sprintf(made, `'z', 'z' || $1::bigint, message_seq, 1, null`, `now()`)},
		{"a reference that", fmt.Sprintf(made, `channel, 'made up', message_seq, 1, 1`, `now()`)},
		{"not before", fmt.Sprintf(made, `channel, provider_reference, message_seq, 1, 1`,
			`claimed_at - interval '1 s'`)},
		{"a receipt on record", fmt.Sprintf(says, `now()`)},
		{"the time at which", fmt.Sprintf(made, `channel, provider_reference, message_seq, 1, 1`,
			`now()`), fmt.Sprintf(says, `now() - interval '1 s'`)},
		{"", `with r as (` + fmt.Sprintf(made, `channel, provider_reference, message_seq, 1, 1`,
			`now()`) + `) ` + fmt.Sprintf(says, `now()`)},
	} {
		id, seq := o.pick(used, drawn)
		for _, one := range sql[1:] {
			o.exec(one, seq)
		}
		if sql[0] != "" {
			want[id] = "receipt " + sql[0]
		}
	}
	v := verify()
	found := map[string]string{}
	for _, m := range v.Mismatches {
		found[m.ID] = m.What
		if derived, ok := strings.CutPrefix(want[m.ID], "receipt "); ok &&
			strings.HasPrefix(m.Derived, derived) {
			found[m.ID] = want[m.ID]
		}
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// TestAuditVerifyListsAThousandAndCountsAll: a version that can no longer be read affects its own
// messages only, and the list of findings is cut off at a thousand.
func TestAuditVerifyListsAThousandAndCountsAll(t *testing.T) {
	t.Parallel()
	const n = listedMismatches + 20
	o := emptyAuditDB(t)
	o.send("v1", testRouting, n)
	o.send("v2", strings.Replace(testRouting, "a: 25, b: 15", "a: 20, b: 20", 1), 1)
	o.exec(`update dispatcher.routing_versions set document = 'channels: {' where version = 1`)
	v, code := o.verify()
	if code != exitFailed || v.Checked != n+1 || v.Mismatched != n ||
		v.ByKind["version"] != n || len(v.Mismatches) != listedMismatches {
		t.Errorf("exit code %d, %d checked, %d of %v, %d listed", code, v.Checked, v.Mismatched,
			v.ByKind, len(v.Mismatches))
	}
	m := v.Mismatches[0]
	if m.What != "version" || m.Stored != "1" ||
		m.Derived != "its document cannot be used any more" {
		t.Errorf("got %+v, want What %v, Stored %v and Derived %v",
			m, "version", "1", "its document cannot be used any more")
	}
	out := dispatcher(t, "", o.env, "audit", "verify").out
	if !strings.Contains(out, fmt.Sprint(n, " version")) || !strings.Contains(out, "the first 1000") {
		t.Errorf("%.300s", out)
	}
}
