package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// checker is shared by the checks: the second round uses results of the first.
type checker struct {
	settings *config.Settings
	embedded bool // the settings are those of a running "run --embedded"
	routing  *config.Routing
}

// examine runs all checks. Those of a round run concurrently and are listed in the order written
// here.
func examine(ctx context.Context, load func() (config.Settings, error)) []finding {
	s, err := load()
	if err != nil {
		return problems("settings", err)
	}
	p := &checker{settings: &s}
	_, p.embedded = embedded.ReadEndpoints(s.DataDir)
	fromEmbedded(&s)
	first := []finding{fine("settings", "%d variables are good", len(s.List()))}
	if err := s.Validate(p.embedded); err != nil {
		first = problems("settings", err)
	}
	return append(first, round(ctx,
		p.checkDrawKey, p.checkDatabase, p.checkDays, p.checkListen, p.checkWebhooks,
		func(ctx context.Context) []finding {
			return append(p.checkRouting(ctx), round(ctx, p.checkKafka, p.checkChannels)...)
		},
	)...)
}

// problems is one failed check for each sentence of an error.
func problems(check string, err error) []finding {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []finding{broken(check, err)}
	}
	var out []finding
	for _, one := range joined.Unwrap() {
		out = append(out, problems(check, one)...)
	}
	return out
}

// round runs checks concurrently, each with its own deadline.
func round(ctx context.Context, checks ...func(context.Context) []finding) []finding {
	results := make([][]finding, len(checks))
	var running sync.WaitGroup
	for i, check := range checks {
		running.Go(func() { results[i] = check(ctx) })
	}
	running.Wait()
	var out []finding
	for _, r := range results {
		out = append(out, r...)
	}
	return out
}

// checkDrawKey reads the keys and checks who else may read them.
func (ck *checker) checkDrawKey(context.Context) []finding {
	path := ck.settings.DrawKeyFile
	if path == "" && ck.embedded {
		path = filepath.Join(ck.settings.DataDir, config.EmbeddedDrawKey)
	}
	if path == "" {
		return nil // the check of the settings has reported it
	}
	keys, err := config.DrawKeys(path)
	if err != nil {
		return []finding{broken("draw key", err)}
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o037 != 0 {
		return []finding{warned("draw key", "others may read or change "+path,
			"chmod o-rwx,g-wx "+quoted(path))}
	}
	return []finding{fine("draw key", "key %s draws", keys[0].ID())}
}

// checkDatabase checks server, schema and clock.
func (ck *checker) checkDatabase(ctx context.Context) []finding {
	if ck.settings.PostgresURL == "" {
		return nil // the check of the settings has reported it
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := ledger.Inspect(ctx, ck.settings.PostgresURL)
	if err != nil {
		return []finding{broken("database", postgresTrouble(ck.settings, err))}
	}
	found := []finding{
		serverFinding(&c), schemaFinding(&c), clockFinding(&c),
		durabilityFinding(&c.Durability),
	}
	found = append(found, snapshotFindings(c.Snapshot)...)
	if ck.embedded {
		return found // its only login owns everything
	}
	return append(found, loginFinding(&c.Login))
}

// oldSnapshot is how many transactions a snapshot may see begin. A claim, its settlement and their
// barriers are about five, and after 12 000 claims each takes six times as long.
const oldSnapshot = 50_000

// snapshotFindings warns of a session that slows claims down.
func snapshotFindings(s ledger.Snapshot) []finding {
	if s.Transactions < oldSnapshot {
		return nil
	}
	return []finding{warned("snapshot", fmt.Sprintf("session %d of login %q keeps a snapshot from %d "+
		"transactions ago, and slows down each claim", s.PID, s.Login, s.Transactions),
		fmt.Sprintf("end it: select pg_terminate_backend(%d)", s.PID))}
}

// loginFinding warns of a login that can change recorded history.
func loginFinding(l *ledger.Login) finding {
	const check = "login"
	const fix = `use a login of the role dispatcher_app, which "dispatcher migrate --roles" makes`
	switch {
	case l.Superuser:
		return warned(check, l.Name+" is a superuser of PostgreSQL", fix)
	case l.Owner:
		return warned(check, l.Name+" owns the ledger, and may change what happened", fix)
	}
	return fine(check, "%s owns nothing of the ledger", l.Name)
}

func serverFinding(c *ledger.Condition) finding {
	version := fmt.Sprintf("PostgreSQL %d.%d", c.Server/10_000, c.Server%10_000)
	if c.Server < ledger.LeastServer {
		return broken("database", fmt.Errorf("%s is too old: use PostgreSQL %d or later", version,
			ledger.LeastServer/10_000))
	}
	if c.Server == ledger.FaultyServer {
		return broken("database", fmt.Errorf("%s loses updates that come at once: use 18.1 or later",
			version))
	}
	return fine("database", "%s answers", version)
}

func schemaFinding(c *ledger.Condition) finding {
	switch {
	case c.Conflict != nil:
		return broken("schema", schemaTrouble(c.Conflict, ""))
	case c.Schema == 0:
		return warned("schema", "the ledger's schema is not there yet",
			`"dispatcher run" makes it at its first start, or run "dispatcher migrate"`)
	case c.Schema < c.Latest:
		return warned("schema", fmt.Sprintf("version %d of %d", c.Schema, c.Latest),
			`"dispatcher run" updates it at its start, or run "dispatcher migrate"`)
	case c.Schema > c.Latest:
		return warned("schema", fmt.Sprintf("version %d is newer than this dispatcher, which "+
			"knows %d", c.Schema, c.Latest), "update this dispatcher")
	}
	return fine("schema", "version %d is the latest", c.Schema)
}

// clockTolerance is how far the clocks may differ. Limits use only the database's clock, but
// producers mean send_at and expires_at by other clocks.
const clockTolerance = time.Second

func clockFinding(c *ledger.Condition) finding {
	if c.Ahead.Abs()-c.RoundTrip/2 >= clockTolerance {
		return warned("clock", fmt.Sprintf("the database's clock differs by %s",
			c.Ahead.Round(time.Millisecond)), "set both by NTP; send_at and expires_at are "+
			"compared with the database's")
	}
	return fine("clock", "the database's clock differs by less than %s", clockTolerance)
}

// durabilityFinding warns of settings that lose commits in a crash.
func durabilityFinding(d *ledger.Durability) finding {
	const check = "durability"
	weak := d.Weaknesses()
	if d.SynchronousStandbyNames != "" && d.Followers == 0 {
		return warned(check, fmt.Sprintf("every commit waits for a standby "+
			"(synchronous_standby_names is %s), and none is connected", d.SynchronousStandbyNames),
			"start the standby, or take its name out of synchronous_standby_names if you can do "+
				"without it")
	}
	if len(weak) == 0 {
		return fine(check, "a commit is on disk before it counts (synchronous_commit is %s)%s",
			d.SynchronousCommit, followersNote(d))
	}
	details := make([]string, len(weak))
	for i, w := range weak {
		details[i] = w.Setting + " is " + w.Value + ": " + w.Cost
	}
	return warned(check, strings.Join(details, "; "), durabilityFix(weak))
}

// followersNote mentions standbys that no commit waits for. Only the operator knows whether one of
// them is to take over.
func followersNote(d *ledger.Durability) string {
	switch d.Unwaited() {
	case 0:
		return ""
	case 1:
		return "; a server follows that no commit waits for: if it may take over, name it in " +
			"synchronous_standby_names"
	}
	return fmt.Sprintf("; %d servers follow that no commit waits for: name those that may take "+
		"over in synchronous_standby_names", d.Unwaited())
}

// durabilityFix says where each setting is to be changed. A session may also get its values from
// its connection URL.
func durabilityFix(weak []ledger.Weakness) string {
	var server, anywhere []string
	for _, w := range weak {
		if w.ServerOnly {
			server = append(server, w.Setting)
		} else {
			anywhere = append(anywhere, w.Setting)
		}
	}
	var fixes []string
	if len(server) > 0 {
		fixes = append(fixes, "set "+strings.Join(server, " and ")+" to on for the server")
	}
	if len(anywhere) > 0 {
		fixes = append(fixes, "set "+strings.Join(anywhere, " and ")+" to on wherever it is set: "+
			"for the server, this database or this role, or in DISPATCHER_POSTGRES_URL")
	}
	return strings.Join(fixes, "; ")
}

// checkRouting finds the routing in force, which later checks use.
func (ck *checker) checkRouting(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	s := ck.settings
	if s.PostgresURL != "" {
		if l, err := openLedger(ctx, s, connect); err == nil {
			defer l.Close()
			if v, err := l.Routing.Current(ctx); err == nil {
				return append(ck.storedRouting(&v), ck.checkTraffic(ctx, l, v.Version)...)
			}
		}
	}
	if s.RoutingFile == "" {
		return []finding{broken("routing", errors.New("no routing is stored and "+
			"DISPATCHER_ROUTING_FILE is not set: set it to a routing document"))}
	}
	doc, err := readRouting("DISPATCHER_ROUTING_FILE", s.RoutingFile)
	if err != nil {
		return problems("routing", err)
	}
	ck.routing = doc
	return append([]finding{fine("routing", "%s is good and will be version 1", s.RoutingFile)},
		status.Closed(doc)...)
}

// checkTraffic lists the figures of each channel and lane, and finds those that do not work as they
// should, as "dispatcher status" does.
func (ck *checker) checkTraffic(ctx context.Context, l *database, version int64) []finding {
	if ck.routing == nil {
		return nil // the check of the routing has reported it
	}
	now, err := lookup.Status(ctx, l.Ledger, ck.settings.DeadAfter, version, ck.routing)
	if err != nil {
		return []finding{broken("traffic", postgresTrouble(ck.settings, err))}
	}
	found := slices.DeleteFunc(now.Findings, func(f finding) bool {
		return f.Check == "instances" // doctor also runs before the start
	})
	if len(found) == 0 {
		found = []finding{fine("traffic", "no channel and no lane is in trouble")}
	}
	return append(now.Summaries(), found...)
}

func (ck *checker) storedRouting(v *ledger.RoutingVersion) []finding {
	doc, err := control.StoredRouting(v)
	if err != nil {
		return problems("routing", err)
	}
	ck.routing = doc
	return []finding{fine("routing", "version %d is in force; channels: %d, routes: %d", v.Version,
		len(doc.Channels), len(doc.Routes))}
}
