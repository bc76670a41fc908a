package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"dispatcher/config"
	"dispatcher/ledger"
)

func TestAWrongBrokerPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-256", "shop", "right"),
		kfake.SeedTopics(1, "sms.transactional"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for password, want := range map[string]int{"right": exitOK, "hush": exitUsage} {
		got := dispatcher(t, "", []string{
			"DISPATCHER_KAFKA_BROKERS=" + cluster.ListenAddrs()[0],
			"DISPATCHER_KAFKA_SASL_MECHANISM=SCRAM-SHA-256",
			"DISPATCHER_KAFKA_SASL_USER=shop",
			"DISPATCHER_KAFKA_SASL_PASSWORD_FILE=" + write(t, "kafka.secret", password+"\n"),
		}, "send", "--to", "+447700900123", "--text", "x")
		if got.code != want || strings.Contains(got.err, "hush") ||
			strings.Count(got.err, "\n") > 1 {
			t.Errorf("%s: got %+v", password, got)
		}
		if want != exitOK && !strings.Contains(got.err, "DISPATCHER_KAFKA_SASL") {
			t.Errorf("got %+v", got)
		}
	}
}

// TestWithLedgerReportsOnlyErrorsOfTheDatabase: an error of the database gets its own text and exit
// code 2, however it is wrapped. A cancellation and all other errors stay as they are.
func TestWithLedgerReportsOnlyErrorsOfTheDatabase(t *testing.T) {
	t.Parallel()
	l := &database{settings: &config.Settings{PostgresURL: "postgres://u:hush@db/x"}}
	for name, tc := range map[string]struct {
		err   error
		taken bool
	}{
		"an answer":     {&pgconn.PgError{Code: "42P01", Message: "no table"}, true},
		"refused":       {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"cut":           {io.ErrUnexpectedEOF, true},
		"out of time":   {context.DeadlineExceeded, true},
		"told to stop":  {context.Canceled, false},
		"found nothing": {ledger.ErrNoRouting, false},
		"a failed work": {failed(nil), false},
		"a file":        {&fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}, false},
	} {
		err := failed(fmt.Errorf("read it: %w", tc.err))
		got := l.sentence(err)
		var coded *codedError
		taken := errors.As(got, &coded) && coded.code == exitUsage
		if taken != tc.taken || !tc.taken && !errors.Is(got, err) ||
			strings.Contains(got.Error(), "hush") {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if l.sentence(nil) != nil {
		t.Error("nil became an error")
	}
}

// TestCtrlCIsNoErrorOfTheDatabase: the exit code is 130, and no error says that the server does not
// answer.
func TestCtrlCIsNoErrorOfTheDatabase(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var said strings.Builder
	t.Setenv("DISPATCHER_POSTGRES_URL", "postgres://u:hush@127.0.0.1:1/x")
	code := execute(ctx, &cli{out: io.Discard, err: &said, load: config.Load}, []string{"report"})
	if code != exitInterrupted || said.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &said)
	}
}

func TestTroublesAreOneSentenceWithWhatToDo(t *testing.T) {
	t.Parallel()
	s := &config.Settings{
		KafkaBrokers: []string{"k:9092"}, KafkaSASLUser: "shop",
		PostgresURL: "postgres://u:hush@db/x",
	}
	wrapped := func(err error) error { return fmt.Errorf("unable to do it: %w", err) }
	for want, got := range map[string]error{
		"refuse the user or the password": kafkaTrouble(s,
			wrapped(kerr.SaslAuthenticationFailed)),
		`to user "shop"`: kafkaTrouble(s,
			wrapped(kerr.ClusterAuthorizationFailed)),
		"connection closed, as with wrong TLS": kafkaTrouble(s, wrapped(io.EOF)),
		"see topic sms.otp: grant": kafkaTopicTrouble(s, "sms.otp",
			kerr.TopicAuthorizationFailed),
		"raise max.message.bytes": publishTrouble("sms.otp",
			wrapped(kerr.MessageTooLarge)),
		"lacks a right (permission denied)": postgresTrouble(s,
			wrapped(&pgconn.PgError{Code: "42501", Message: "permission denied"})),
		"PostgreSQL answers with an error": postgresTrouble(s,
			wrapped(&pgconn.PgError{Code: "XX000"})),
		"at db:5432 of DISPATCHER_POSTGRES_URL ": postgresTrouble(s, errors.New("broken pipe")),
	} {
		text := got.Error()
		if !strings.Contains(text, want) || strings.Contains(text, "hush") ||
			strings.Contains(text, "\n") {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
