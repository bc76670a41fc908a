package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/api"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/config"
	"dispatcher/ledger"
)

// gate says who may use the API and the console. If the process has embedded servers and a loopback
// address, and nothing is configured, access is by the token of the data folder, which is printed.
// gate also returns that token; empty if there is none.
func (c *cli) gate(s *config.Settings, own bool) (*access.Gate, string, error) {
	roles, err := s.OIDCRoles()
	if err != nil {
		return nil, "", err
	}
	cfg := access.Config{
		TokensFile: s.APITokensFile, OIDCIssuer: s.OIDCIssuer, OIDCAudience: s.OIDCAudience,
		OIDCRolesClaim: s.OIDCRolesClaim, OIDCRoleMap: roles, OIDCNameClaim: s.OIDCNameClaim,
		OIDCTenantClaim: s.OIDCTenantClaim, OIDCClientID: s.OIDCClientID,
		OIDCClientSecretFile: s.OIDCClientSecretFile, OIDCScopes: s.OIDCScopes,
		Rate: access.Rate{PerSecond: float64(s.APIRate), Burst: 5 * s.APIRate},
	}
	if own && cfg.TokensFile == "" && cfg.OIDCIssuer == "" && onLoopback(s.Listen) {
		if cfg.Embedded, err = embeddedToken(s.DataDir); err != nil {
			return nil, "", err
		}
		fmt.Fprintf(c.out, "Token of the API and the console: %s (also in %s)\n", cfg.Embedded,
			filepath.Join(s.DataDir, config.EmbeddedToken))
	}
	gate, err := access.New(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("DISPATCHER_API_TOKENS_FILE or DISPATCHER_OIDC_ISSUER: %w", err)
	}
	return gate, cfg.Embedded, nil
}

// onLoopback reports whether only this machine can reach an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && access.IsLoopback(host)
}

// embeddedToken is the token of a data folder, which is created once.
func embeddedToken(folder string) (string, error) {
	path := filepath.Join(folder, config.EmbeddedToken)
	raw, err := os.ReadFile(path)
	if token := strings.TrimSpace(string(raw)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the token of the API: %w", err)
	}
	token, _, err := access.NewToken(access.EmbeddedName, access.Admin)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the token of the API: %w", err)
	}
	return token, nil
}

// serveAPI makes a process answer /api/v1, if any access is configured. The API publishes through
// intake, which is closed at the end.
func serveAPI(opts *app.Options, gate *access.Gate, intake *kafka.Intake) {
	if !gate.Enabled() {
		return
	}
	opts.Handler = func(
		l *ledger.Ledger, metrics *kafka.IntakeMetrics,
	) (http.Handler, func(), error) {
		s := &opts.Settings
		region, err := numbers.ParseRegion(s.DefaultRegion)
		if err != nil {
			return nil, nil, err
		}
		cfg := api.Config{
			Gate: gate, Ledger: l, Keys: opts.Keys, Region: region,
			DeadAfter: s.DeadAfter, Log: opts.Log, AllowUnknown: s.AllowUnknownFields,
			Publish: intake.PublishOne, IntakeMetrics: metrics,
		}
		if s.APIIntake {
			cfg.Intake = intake
		}
		a := api.New(cfg)
		return a.Handler(), func() { a.Close(); intake.Close() }, nil
	}
}

// newIntake returns the client that publishes messages from senders and replayed dead records. It
// connects when there is something to write.
func newIntake(s *config.Settings, tracer *tracing.Tracer) (*kafka.Intake, error) {
	options, err := app.Connection(s).Options()
	if err != nil {
		return nil, err
	}
	return kafka.NewIntake(s.KafkaCompression, append(options, tracer.Publishing()...)...)
}
