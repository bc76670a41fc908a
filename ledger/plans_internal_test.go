package ledger

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
)

// TestHotStatementsReadADayByItsKeys, also when they are planned while the day is empty and was
// never analysed, as at midnight: the plans are kept while it fills.
func TestHotStatementsReadADayByItsKeys(t *testing.T) {
	t.Parallel()
	conn := sessionWith(t, ledgertest.Fresh(t), hotSettings)
	resolve, _, err := resolveArguments(&Resolution{}).RewriteQuery(t.Context(), conn,
		resolveAmbiguity.on(DayAt(time.Now())), nil)
	if err != nil {
		t.Fatal(err)
	}
	statements := map[string]string{
		// of all days
		"slots": releaseSlots, "abandoned": selectAbandoned,
		"lease": leaseAmbiguities, "ambiguities": readAmbiguities, "resolve": resolve,
	}
	for name, s := range map[string]*dayStatement{
		"record ambiguities": recordAmbiguities, "repeated": lockRepeated,
		"resolved": lockResolved, "message": lockMessage, "committed": selectCommitted,
		"free": freeAttempts, "change": updateMessages, "expect": expectReceipts,
		"attempts of receipts": lockAttemptRows, "messages of receipts": readMessageRows,
		"locked messages of receipts": lockMessageRows,
		"what receipts say":           updateAttemptRows, "received": updateReceived,
		"states": updateStatuses, "flags": flagMessages,
		"cancel": cancelMessages, "lock": lockMessages, "settle": settle,
		"stored": selectStored, "corrected": corrected,
	} {
		statements[name] = s.on(DayAt(time.Now()))
	}
	for name, sql := range statements {
		if got := genericPlan(t, conn, sql); !byKeys(got) || allDays.MatchString(got) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if byKeys(genericPlan(t, conn, `select from dispatcher.all_attempts where channel = $1`)) {
		t.Error("a scan of all days passes")
	}
	if _, err := conn.Exec(t.Context(), `select dispatcher.make_day(20000);
		select dispatcher.move_receipts(20000, 0)`); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{
		"ids": insertIDs[0], "ids of an odd turn": insertIDs[1], "ids again": insertIDsAgain[0],
		"opt-outs": selectOptedOut, "pending": selectPending, "receipts": mergeReceipts,
		"parts": readParts, "overdue": pickDue, "look at": fallDue, "affected": selectAffected,
		"contents": selectDigests, "moved": selectMoved, "over": deleteOver,
		"open": insertOpen.on(DayAt(time.Now())), "settled": insertSettled.on(DayAt(time.Now())),
	} {
		if got := genericPlan(t, conn, sql); allDays.MatchString(got) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if !allDays.MatchString(genericPlan(t, conn, `select from dispatcher.receipts where code = $1`)) {
		t.Error("a scan of all receipts passes")
	}
}

// TestDueMessagesAreReadByTheirKeys: the statement in the body of lock_due is planned for the
// numbers that it gets, and does not look all of them up for each message.
func TestDueMessagesAreReadByTheirKeys(t *testing.T) {
	t.Parallel()
	conn := sessionWith(t, ledgertest.Fresh(t), hotSettings)
	var body string
	var settings []string
	if err := conn.QueryRow(t.Context(), `select prosrc, proconfig from pg_proc where oid =
		'dispatcher.lock_due(bigint[])'::regprocedure`).Scan(&body, &settings); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(settings, "plan_cache_mode=force_custom_plan") {
		t.Errorf("it is planned for any numbers: %s", settings)
	}
	_, query, found := strings.Cut(body, "return query")
	query, _, ended := strings.Cut(query, ";")
	if !found || !ended {
		t.Fatalf("not one statement: %s", body)
	}
	first := DayAt(time.Now()).first()
	for name, value := range map[string]string{
		"picked": fmt.Sprintf("'{%d,%d}'::bigint[]", first+1, first+2),
		"low":    fmt.Sprint(first + 1), "high": fmt.Sprint(first + 2),
	} {
		query = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(query, value)
	}
	got := planOf(t, conn, query)
	days := map[string]bool{}
	for _, m := range partitionScan.FindAllString(got, -1) {
		days[regexp.MustCompile(`\d{8}`).FindString(m)] = true
	}
	looksAllUp := strings.Contains(got, "ANY ('{1")
	if !byKeys(got) || allDays.MatchString(got) || len(days) != 1 || looksAllUp {
		t.Errorf("of %d days:\n%s", len(days), got)
	}
}

// TestComparingReceiptsReadsOneDay of the tables that have one for each.
func TestComparingReceiptsReadsOneDay(t *testing.T) {
	t.Parallel()
	conn := sessionWith(t, ledgertest.Fresh(t), reportSettings)
	const first = 20_000
	if _, err := conn.Exec(t.Context(), `
		select dispatcher.make_day(d), dispatcher.move_receipts(d, 0)
		from generate_series($1::int, $2) d`, first, first+4); err != nil {
		t.Fatal(err)
	}
	day := Day(first + 2)
	got := planOf(t, conn, misfitReceipts, pgx.NamedArgs{
		"low": day.first(), "high": day.first() + misfitPiece,
		"from": day.Begin(), "to": day.Begin().Add(time.Hour),
	})
	days := map[string]bool{}
	for _, m := range regexp.MustCompile(`on (messages|past_receipts)_\d{8}`).FindAllString(got, -1) {
		days[m] = true
	}
	if !byKeys(got) || allDays.MatchString(got) || len(days) != 2 {
		t.Errorf("it reads %v:\n%s", days, got)
	}
}

// TestAPageOfUnsentMessagesReadsTheNextRowsByTheirKeys among many, for any filter.
func TestAPageOfUnsentMessagesReadsTheNextRowsByTheirKeys(t *testing.T) {
	t.Parallel()
	conn := sessionWith(t, ledgertest.Fresh(t), reportSettings)
	for _, sql := range []string{
		`insert into dispatcher.due (seq, next_at, lane, tenant, state)
		 select dispatcher.first_of(dispatcher.day_at(now())) + n, now(), 'otp', 'shop', 'waiting'
		 from generate_series(1, 5000) n`,
		`analyze dispatcher.due`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	for name, f := range map[string]UnsentFilter{
		"all":    {},
		"route":  {Route: "promo"},
		"tenant": {Tenant: "bank", Before: now},
		"since":  {Lane: "otp", Since: now.Add(-time.Hour), Before: now},
	} {
		got := planOf(t, conn, selectUnsent, f.arguments(0, 500, true))
		if !byKeys(got) || strings.Contains(got, "Seq Scan") ||
			!strings.Contains(got, "Index Scan using due_pkey") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestActionsAreFoundByIndexes: seals look for new ones every minute, and there may be millions.
func TestActionsAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	conn := sessionWith(t, ledgertest.Fresh(t), reportSettings)
	for _, sql := range []string{
		`insert into dispatcher.operator_actions (at, author, reason, action, subject)
		 select now() - n * interval '1 minute', 'ann', 'withdrawn',
		   case n % 9 when 0 then 'pause' else 'cancel' end, 'm' || n
		 from generate_series(1, 5000) n`,
		`analyze dispatcher.operator_actions`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	since := time.Now().Add(-5 * time.Minute)
	for name, got := range map[string]string{
		"new":       planOf(t, conn, newFinance, time.Now()),
		"sealed":    planOf(t, conn, selectFinance, since, nil),
		"most":      planOf(t, conn, lastFinance, since, time.Now(), mostFinance),
		"cancelled": planOf(t, conn, selectCancelledBy, "m7"),
	} {
		if strings.Contains(got, "Seq Scan on operator_actions") ||
			!strings.Contains(got, "operator_actions_") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// sessionWith is a connection with settings of the ledger's.
func sessionWith(t *testing.T, url string, settings map[string]string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.RuntimeParams, settings)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(conn) })
	return conn
}

// planOf is the plan of a statement for its arguments.
func planOf(t testing.TB, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "explain "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// genericPlan is the plan of a statement for any parameters.
func genericPlan(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	ctx := t.Context()
	if _, err := conn.PgConn().Exec(ctx, `prepare hot as `+sql).ReadAll(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	var n int
	if err := conn.QueryRow(ctx, `select cardinality(parameter_types) from pg_prepared_statements
		where name = 'hot'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	results, err := conn.PgConn().Exec(ctx, fmt.Sprintf(
		`explain execute hot (null%s); deallocate hot`, strings.Repeat(", null", n-1))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range results[0].Rows {
		lines = append(lines, string(row[0]))
	}
	return strings.Join(lines, "\n")
}

var (
	partitionScan = regexp.MustCompile(`Scan .*on (messages|payloads|attempts)_\d{8} .*\n.*`)
	// allDays is a scan of a table that holds all days.
	allDays      = regexp.MustCompile(`Seq Scan on (receipts|due|held|awaited|opt_outs|(past_)?ids_\d+|past_receipts_\d+)\b`)
	keyCondition = regexp.MustCompile(`(Index|Recheck) Cond: \(+(message_seq|seq|claimed_at) `)
)

// byKeys reports whether a plan reads partitions only by their keys, or by claimed_at.
func byKeys(plan string) bool {
	scans := partitionScan.FindAllString(plan, -1)
	for _, scan := range scans {
		if !keyCondition.MatchString(scan) {
			return false
		}
	}
	return len(scans) > 0
}
