package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/provider/smpp/smpptest"
)

// carrier starts an SMSC with one account.
func carrier(t *testing.T) *smpptest.Server {
	t.Helper()
	s, err := smpptest.Start(smpptest.Config{SystemID: "acme", Password: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// carrierRouting has an SMPP channel, one with a wrong password, a sandbox channel and a disabled
// channel.
func carrierRouting(t *testing.T, address string, more ...string) string {
	t.Helper()
	path := write(t, "routing.yaml", fmt.Sprintf(`channels:
  good: {provider: smpp, settings: {address: %q, system_id: acme, password_file: good.secret}}
  toy: {provider: sandbox}
  off:
    provider: smpp
    state: disabled
    settings: {address: "127.0.0.1:1", system_id: acme, password_file: none.secret}
%s
routes:
  - {name: default, match: {}, weights: {good: 1, toy: 1}}
lanes: {otp: {}}
`, address, strings.Join(more, "\n")))
	for name, secret := range map[string]string{
		"good.secret": "s3cret\n", "wrong.secret": "hush\n",
	} {
		err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(secret), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// diagnosis runs doctor and returns its findings, keyed by check.
func diagnosis(t *testing.T, env []string) (map[string]finding, result) {
	t.Helper()
	got := dispatcher(t, "", env, "doctor", "--format", "json")
	var value struct {
		Checks []finding `json:"checks"`
		Failed int       `json:"failed"`
	}
	if err := json.Unmarshal([]byte(got.out), &value); err != nil {
		t.Fatalf("%v: got %+v", err, got)
	}
	found := map[string]finding{}
	for _, f := range value.Checks {
		found[f.Check] = f
		if (f.Status == statusOK) != (f.Fix == "") {
			t.Errorf("%s has status %s and fix %q", f.Check, f.Status, f.Fix)
		}
	}
	if (value.Failed > 0) != (got.code == exitFailed) {
		t.Errorf("%d failed, exit %d", value.Failed, got.code)
	}
	return found, got
}

func TestDoctorFindsAGoodSetUpGood(t *testing.T) {
	t.Parallel()
	brokers, _ := broker(t, "sms.otp", "sms.status", "sms.dead", "sms.inbound")
	smsc := carrier(t)
	durable := ledgertest.Server(t,
		map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"})
	if err := ledger.Migrate(t.Context(), durable.URL()); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.GrantRoles(t.Context(), durable.URL(), 400*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	routing := carrierRouting(t, smsc.Addr())
	found, got := diagnosis(t, []string{
		brokers, "DISPATCHER_POSTGRES_URL=" + ledgertest.As(migrations.RoleApp, durable.URL()),
		"DISPATCHER_DRAW_KEY_FILE=" + write(t, "draw.key", config.NewDrawKey()),
		"DISPATCHER_ROUTING_FILE=" + routing, "DISPATCHER_SECRETS_DIR=" + filepath.Dir(routing),
		"DISPATCHER_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
	})
	want := []string{
		"brokers", "channel good", "channel off", "channel toy", "clock", "database", "days",
		"draw key", "durability", "group dispatcher.otp", "listen", "locks", "login", "old days",
		"retention", "routing", "schema", "settings", "topic sms.dead", "topic sms.inbound", "topic sms.otp",
		"topic sms.status", "webhooks",
	}
	if names := slices.Sorted(maps.Keys(found)); got.code != exitOK || !slices.Equal(names, want) {
		t.Errorf("%v: got %s", names, got.out)
	}
	for _, f := range found {
		if f.Status != statusOK {
			t.Errorf("got %+v, want Status %v", f, statusOK)
		}
	}
	if stats := smsc.Stats(); stats.Binds != 1 || stats.Unbinds != 1 || stats.Submits != 0 {
		t.Errorf("got submits %+v at the carrier", stats)
	}
}

func TestDoctorShowsWhatTheLedgerKeeps(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	url := ledgertest.Fresh(t)
	env := []string{
		"DISPATCHER_POSTGRES_URL=" + url, "DISPATCHER_PAYLOAD_RETENTION=48h",
		"DISPATCHER_LEDGER_RETENTION=240h",
	}
	check := func(change, check, status, want string) {
		t.Helper()
		alter(t, url, change)
		found, _ := diagnosis(t, env)
		if f := found[check]; f.Status != status || !strings.Contains(f.Detail, want) {
			t.Errorf("%s: %+v, want %s, %s", check, f, status, want)
		}
	}
	today := time.Now().UTC()
	check(`select`, "retention", "ok",
		"numbers and texts for 2 days after the end of a message, the rest for 10 days, ids for 7 days")
	check(`update dispatcher.least_kept set facts = '20 days'`, "retention", "warn",
		"the owner of the ledger keeps them for 20 days")
	check(`update dispatcher.least_kept set facts = '10 days'`, "retention", "ok", "")
	check(`select`, "days", "ok", "to "+today.AddDate(0, 0, 2).Format(time.DateOnly))
	check(`select`, "old days", "ok", "none")
	check(`select`, "locks", "ok", "enough for 14 days")
	check(`update dispatcher.id_turns set since = now() - interval '8 days'`, "days", "warn",
		"no ids were forgotten")
	check(`select dispatcher.make_day(dispatcher.day_at(now()) - 4)`, "days", "warn",
		"numbers and texts of "+today.AddDate(0, 0, -4).Format(time.DateOnly)+" are still there")
	check(`update dispatcher.days set payloads = false, day = day - 10
		where day < dispatcher.day_at(now())`, "days", "warn",
		today.AddDate(0, 0, -14).Format(time.DateOnly)+" is still there")
	check(`update dispatcher.days set living = 3 where day < dispatcher.day_at(now())`, "old days",
		"warn", today.AddDate(0, 0, -14).Format(time.DateOnly)+": 3")
	check(`delete from dispatcher.days where day > dispatcher.day_at(now())`, "days", "warn",
		"partitions are made until "+today.Format(time.DateOnly)+" only")
	env = append(env, "DISPATCHER_LEDGER_RETENTION=174720h")
	check(`select`, "locks", "warn", "questions about 7284 days may need 87408")
}

// alter runs a statement on a database.
func alter(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // It has no more to do.
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorNamesEachFaultWithItsFix(t *testing.T) {
	t.Parallel()
	brokers, _ := broker(t, "sms.otp", "sms.dead")
	smsc := carrier(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	key := write(t, "draw.key", config.NewDrawKey())
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	smpp := func(name, address, secret, more string) string {
		return fmt.Sprintf("  %s: {provider: smpp, settings: {address: %q, system_id: acme, "+
			"password_file: %s.secret%s}}", name, address, secret, more)
	}
	sinch := func(name, secret, more string) string {
		return fmt.Sprintf("  %s: {provider: sinch, settings: {service_plan_id: plan, "+
			"token_file: %s.secret%s}}", name, secret, more)
	}
	routing := carrierRouting(t, smsc.Addr(),
		smpp("wrong", smsc.Addr(), "wrong", ""),
		smpp("patient", smsc.Addr(), "good", ", response_timeout: 1m"),
		smpp("lost", "127.0.0.1:1", "good", ""),
		smpp("fileless", "127.0.0.1:1", "none", ""),
		sinch("silent", "good", ", callback_secret_files: good.secret"),
		sinch("local", "good", `, base_url: "http://127.0.0.1:1", allow_private: true`),
		sinch("inward", "good", `, base_url: "http://127.0.0.1:1"`),
		sinch("plain", "good", `, base_url: "http://api.example.com"`),
		sinch("tokenless", "none", ""),
		`  trial: {provider: twilio, test: true}`,
		`  dummy: {provider: smpp, test: true}`,
		`  halfway: {provider: twilio, test: true, settings: {from: x}}`,
	)
	found, got := diagnosis(t, []string{
		brokers, "DISPATCHER_POSTGRES_URL=" + ledgertest.Empty(t),
		"DISPATCHER_DRAW_KEY_FILE=" + key,
		"DISPATCHER_ROUTING_FILE=" + routing, "DISPATCHER_SECRETS_DIR=" + filepath.Dir(routing),
		"DISPATCHER_LISTEN=" + taken.Addr().String(),
		"DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_TLS_CERT_FILE=" + key,
		"DISPATCHER_RECEIPTS_TLS_KEY_FILE=" + key,
	})
	for check, want := range map[string]finding{
		"draw key": {Status: statusWarn, Fix: "chmod o-rwx,g-wx"},
		"durability": {
			Status: statusWarn, Detail: "synchronous_commit is off",
			Fix: "set fsync and full_page_writes to on for the server; set synchronous_commit to " +
				"on wherever it is set: for the server, this database or this role, or in " +
				"DISPATCHER_POSTGRES_URL",
		},
		"schema": {Status: statusWarn, Fix: "dispatcher migrate"},
		"login": {
			Status: statusWarn, Detail: "dispatcher is a superuser", Fix: "dispatcher_app",
		},
		"listen": {Status: statusFail, Detail: "is taken", Fix: "choose another port"},
		"topic sms.status": {
			Status: statusFail, Detail: "no topic sms.status",
			Fix: `create it with "dispatcher topics create"`,
		},
		"topic sms.otp": {Status: statusOK},
		"channel good":  {Status: statusOK},
		"channel patient": {
			Status: statusWarn, Detail: "response_timeout 1m0s has no effect",
			Fix: "lower response_timeout",
		},
		"channel wrong": {Status: statusFail, Detail: "bind refused", Fix: "password_file"},
		"channel lost":  {Status: statusFail, Detail: "connection refused", Fix: "address"},
		"webhooks": {
			Status: statusFail, Detail: "DISPATCHER_RECEIPTS_TLS_CERT_FILE", Fix: "in PEM form",
		},
		"channel plain": {
			Status: statusWarn, Detail: "api.example.com without encryption", Fix: "https",
		},
		"channel silent": {
			Status: statusWarn, Detail: "not asked for receipts", Fix: "DISPATCHER_PUBLIC_URL",
		},
		"channel local": {Status: statusOK},
		"channel inward": {
			Status: statusWarn, Detail: "private network", Fix: "allow_private: true",
		},
		"channel trial":   {Status: statusOK, Detail: "marked test"},
		"channel dummy":   {Status: statusOK, Detail: "marked test"},
		"channel halfway": {Status: statusWarn, Detail: "account_sid", Fix: "before the mark"},
		"channel tokenless": {
			Status: statusFail, Detail: "token_file", Fix: "settings of this channel",
		},
		"channel fileless": {
			Status: statusFail, Detail: "password_file", Fix: "settings of this channel",
		},
	} {
		f := found[check]
		if f.Status != want.Status || !strings.Contains(f.Detail, want.Detail) ||
			!strings.Contains(f.Fix, want.Fix) {
			t.Errorf("%s: %+v, want %+v", check, f, want)
		}
	}
	if strings.Contains(got.out, "s3cret") || strings.Contains(got.out, "hush") {
		t.Error("the output shows a secret")
	}
}

// TestAnAWSChannelThatMayEndPendingIsNamedWithItsRoute: only where receipts are awaited for longer
// than no_receipt says.
func TestAnAWSChannelThatMayEndPendingIsNamedWithItsRoute(t *testing.T) {
	t.Parallel()
	routing, err := config.ParseRouting("routing.yaml", []byte(`
channels:
  pending: {provider: aws}
  settled: {provider: aws, settings: {successful: delivered}}
  brief: {provider: aws, receipts: {within: 1m}}
  other: {provider: sandbox}
  apart: {provider: aws}
routes:
  - {name: plain, weights: {apart: 50, pending: 50}}
  - {name: safe, weights: {pending: 25, settled: 25, brief: 25, other: 25}, no_receipt: {after: 2m}}
lanes:
  otp: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range routing.Channels {
		c, want := &routing.Channels[i], ""
		if c.Name == "pending" {
			want = "safe"
		}
		if got := endsPendingOn(routing, c); got != want {
			t.Errorf("%s: route %q, want %q", c.Name, got, want)
		}
	}
}

func TestDoctorWithoutAnythingSaysWhatToSet(t *testing.T) {
	t.Parallel()
	got := dispatcher(t, "", []string{"DISPATCHER_LISTEN=127.0.0.1:0"}, "doctor")
	for _, want := range []string{
		"DISPATCHER_KAFKA_BROKERS", "DISPATCHER_POSTGRES_URL", "DISPATCHER_DRAW_KEY_FILE",
		"DISPATCHER_ROUTING_FILE", "keys new",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%s is missing in\n%s", want, got.out)
		}
	}
	if got.code != exitFailed || !strings.Contains(got.err, "checks failed") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitFailed, "checks failed")
	}
}

func TestDoctorUsesTheStoredRouting(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	found, _ := diagnosis(t,
		[]string{
			"DISPATCHER_POSTGRES_URL=" + url, "DISPATCHER_KAFKA_BROKERS=127.0.0.1:1",
			"DISPATCHER_LISTEN=127.0.0.1:0",
		})
	f := found["routing"]
	if f.Status != statusOK || !strings.Contains(f.Detail, "version 1 is in force") {
		t.Errorf("got %+v", f)
	}
	f = found["brokers"]
	if f.Status != statusFail || !strings.Contains(f.Fix, "check the addresses") {
		t.Errorf("got %+v", f)
	}
}

// TestDoctorTellsTheFiguresOfEachChannelAndLane, in JSON on one line and in a table of at most 120
// columns.
func TestDoctorTellsTheFiguresOfEachChannelAndLane(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url, "DISPATCHER_LISTEN=127.0.0.1:0"}
	found, _ := diagnosis(t, env)
	for check, want := range map[string]string{
		"summary of channel a": "enabled; carried none of 25.00 %; rate/s 0.0",
		"summary of channel b": "enabled; carried none of 15.00 %; rate/s 0.0",
		"summary of channel c": "enabled; carried none of 60.00 %; rate/s 0.0",
	} {
		if f := found[check]; f.Status != statusOK || f.Detail != want {
			t.Errorf("%s: %+v, want ok, %s", check, f, want)
		}
	}
	for _, lane := range []string{"otp", "transactional"} {
		f := found["summary of lane "+lane]
		if !strings.HasPrefix(f.Detail, "lag unknown; not paused; waiting 0") {
			t.Errorf("lane %s: %+v", lane, f)
		}
	}
	table := dispatcher(t, "", env, "doctor").out
	if !strings.Contains(table, "summary of channel a") {
		t.Errorf("the table lacks channel a:\n%s", table)
	}
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}

func TestDoctorTakesARunningDispatcherForIts(t *testing.T) {
	t.Parallel()
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(running.Close)
	found, _ := diagnosis(t, []string{"DISPATCHER_LISTEN=" + running.Listener.Addr().String()})
	f := found["listen"]
	if f.Status != statusOK || !strings.Contains(f.Detail, "a dispatcher runs at") {
		t.Errorf("got %+v", f)
	}
}

func TestConditionsOfADatabaseAreChecked(t *testing.T) {
	t.Parallel()
	latest := migrations.Latest()
	if found := snapshotFindings(ledger.Snapshot{PID: 7, Transactions: oldSnapshot - 1}); found != nil {
		t.Errorf("a snapshot that is not old: %+v", found)
	}
	const onDisk = "ok: a commit is on disk before it counts (synchronous_commit is on); "
	const noStandby = "warn: every commit waits for a standby " +
		"(synchronous_standby_names is a), and none is"
	for want, got := range map[string]finding{
		"fail: PostgreSQL 14.9 is too old":    serverFinding(&ledger.Condition{Server: 140_009}),
		"fail: PostgreSQL 18.0 loses updates": serverFinding(&ledger.Condition{Server: 180_000}),
		"ok: PostgreSQL 18.1 answers":         serverFinding(&ledger.Condition{Server: 180_001}),
		"ok: PostgreSQL 15.0 answers":         serverFinding(&ledger.Condition{Server: 150_000}),
		"warn: version 1 of": schemaFinding(
			&ledger.Condition{Schema: 1, Latest: latest}),
		"warn: version 99 is newer": schemaFinding(
			&ledger.Condition{Schema: 99, Latest: latest}),
		"ok: version 2 is the latest": schemaFinding(&ledger.Condition{Schema: 2, Latest: 2}),
		"warn: the database's clock":  clockFinding(&ledger.Condition{Ahead: -clockTolerance}),
		"ok: the database's clock differs": clockFinding(
			&ledger.Condition{Ahead: clockTolerance, RoundTrip: clockTolerance}),
		"ok: the database's clock differs ": clockFinding(
			&ledger.Condition{Ahead: clockTolerance - 1}),
		onDisk + "a server follows that no": durabilityFinding(
			&ledger.Durability{SynchronousCommit: "on", Followers: 1}),
		onDisk + "2 servers follow that no": durabilityFinding(
			&ledger.Durability{SynchronousCommit: "on", Followers: 2}),
		`warn: session 7 of login "ann" keeps a snapshot from 50000 transactions`: snapshotFindings(
			ledger.Snapshot{PID: 7, Login: "ann", Transactions: oldSnapshot})[0],
		noStandby: durabilityFinding(
			&ledger.Durability{SynchronousCommit: "on", SynchronousStandbyNames: "a"}),
	} {
		text := got.Status + ": " + got.Detail
		if !strings.HasPrefix(text, strings.TrimSpace(want)) {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
