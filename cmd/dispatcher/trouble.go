package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/ledger/migrations"
)

// kafkaTrouble says in one sentence why the brokers cannot be used and what to do.
func kafkaTrouble(s *config.Settings, err error) error {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err,
		kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return errors.New("the brokers of DISPATCHER_KAFKA_BROKERS refuse the user or the " +
			"password: check DISPATCHER_KAFKA_SASL_MECHANISM, DISPATCHER_KAFKA_SASL_USER and the " +
			"file of DISPATCHER_KAFKA_SASL_PASSWORD_FILE")
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err,
		kerr.GroupAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("the brokers do not allow that to user %q of "+
			"DISPATCHER_KAFKA_SASL_USER: grant it the rights to the topics and the group",
			s.KafkaSASLUser)
	}
	if e, ok := embedded.ReadEndpoints(s.DataDir); ok && slices.Equal(e.KafkaBrokers,
		s.KafkaBrokers) {
		return staleEndpoints(s, "Kafka", brokerList(s), "DISPATCHER_KAFKA_BROKERS")
	}
	why := app.Cause(err)
	if errors.Is(err, io.EOF) {
		// Brokers close a connection without an error when it is not of the kind that they expect.
		why = "connection closed, as with wrong TLS or a wrong login"
	}
	return fmt.Errorf("no broker of DISPATCHER_KAFKA_BROKERS (%s) answers (%s): check the "+
		"addresses, the network and the DISPATCHER_KAFKA_TLS and DISPATCHER_KAFKA_SASL settings",
		brokerList(s), why)
}

// kafkaTopicTrouble says why a topic cannot be used.
func kafkaTopicTrouble(s *config.Settings, topic string, err error) error {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("the brokers have no topic %s: create it with \"dispatcher topics "+
			"create\", or correct the name", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("the brokers do not let user %q of DISPATCHER_KAFKA_SASL_USER see topic "+
			"%s: grant it", s.KafkaSASLUser, topic)
	}
	return kafkaTrouble(s, err)
}

// postgresTrouble says in one sentence why the database cannot be used and what to do. The address
// is shown without its password.
func postgresTrouble(s *config.Settings, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code == invalidPassword { // by another server at the same port
		if e, ok := embedded.ReadEndpoints(s.DataDir); ok && e.PostgresURL == s.PostgresURL {
			return staleEndpoints(s, "PostgreSQL", app.PostgresAddress(s.PostgresURL),
				"DISPATCHER_POSTGRES_URL")
		}
	}
	return app.PostgresTrouble(s, err)
}

// invalidPassword is the SQLSTATE of that name.
const invalidPassword = "28P01"

// staleEndpoints says that a server of "run --embedded" does not answer. It was found through the
// file in the data folder, which a killed process could not remove.
func staleEndpoints(s *config.Settings, server, where, setting string) error {
	return fmt.Errorf("the embedded %s at %s does not answer: %s was left by a \"dispatcher run "+
		"--embedded\" that runs no more; "+
		"start it again over this folder, or set %s to another server",
		server, where, filepath.Join(s.DataDir, config.EmbeddedEndpoints), setting)
}

// schemaTrouble says that another build made the ledger's schema, and what to do. folder is that of
// the embedded servers; empty for a database of DISPATCHER_POSTGRES_URL.
func schemaTrouble(err error, folder string) error {
	conflict, ok := errors.AsType[*migrations.ConflictError](err)
	switch {
	case !ok:
		return err
	case folder != "":
		return fmt.Errorf("%s; run the build that made the data folder %s, name another one in "+
			"DISPATCHER_DATA_DIR, or see Upgrade in docs/deploy.md", conflict.Problem(), folder)
	}
	return fmt.Errorf("%s; run the build that made it, name an empty database in "+
		"DISPATCHER_POSTGRES_URL, or see Upgrade in docs/deploy.md", conflict.Problem())
}

// fromDatabase reports whether an error is an answer of the database, or a failure to reach it:
// connection refused, cut or timed out. A command that was told to stop does not count.
func fromDatabase(err error) bool {
	connect, network := (*pgconn.ConnectError)(nil), (*net.OpError)(nil)
	return err != nil && !errors.Is(err, context.Canceled) && (fromPostgres(err) ||
		errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded))
}

// fromPostgres reports whether an error is an answer of the database.
func fromPostgres(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}
