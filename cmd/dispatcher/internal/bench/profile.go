package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// profileSeconds is how long the CPU profile of a process takes. What is left of it after the run
// has few samples.
const profileSeconds = 5

// profile begins the profile of a run. finish waits for its end and writes NAME.pprof and NAME.csv
// into the folder of Config.Profile; both do nothing without such a folder.
func (r *run) profile(
	ctx context.Context, p *process,
) (finish func(messages int) error, err error) {
	if r.rig.profiles == "" || r.pause > 0 {
		return func(int) error { return nil }, nil
	}
	url := r.rig.servers.Postgres.URLOf(r.ledgerName())
	if err := statementsReset(ctx, url); err != nil {
		return nil, fmt.Errorf("pg_stat_statements, which --profile needs (package "+
			"postgresql-contrib): %w", err)
	}
	path := filepath.Join(r.rig.profiles, r.name)
	saved := make(chan error, 1)
	go func() { saved <- saveProfile(ctx, p.url, path+".pprof") }()
	return func(messages int) error {
		return errors.Join(saveStatements(ctx, url, path+".csv", messages), <-saved)
	}, nil
}

// saveProfile writes the CPU profile of a process, for go tool pprof.
func saveProfile(ctx context.Context, url, path string) error {
	url += "/debug/pprof/profile?seconds=" + strconv.Itoa(profileSeconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read the CPU profile: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}

func statementsReset(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	_, err = conn.Exec(ctx, `
		create extension if not exists pg_stat_statements;
		select pg_stat_statements_reset()`)
	return err
}

// saveStatements writes a row for each statement that the run has sent, the most expensive one
// first. Times include waits for locks.
func saveStatements(ctx context.Context, url, path string, messages int) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := csv.NewWriter(file)
	if err := out.Write([]string{
		"us_per_message", "wal_bytes_per_message", "calls", "rows", "statement",
	}); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `
		select s.total_exec_time * 1000 / $1::float8, s.wal_bytes::float8 / $1, s.calls, s.rows,
		  s.query
		from pg_stat_statements s join pg_database d on d.oid = s.dbid
		where d.datname = current_database()
		order by s.total_exec_time desc`, messages)
	if err != nil {
		return err
	}
	var us, wal float64
	var calls, count int64
	var text string
	if _, err := pgx.ForEachRow(rows, []any{&us, &wal, &calls, &count, &text}, func() error {
		return out.Write([]string{
			strconv.FormatFloat(us, 'f', 2, 64), strconv.FormatFloat(wal, 'f', 0, 64),
			strconv.FormatInt(calls, 10), strconv.FormatInt(count, 10), firstLine(text),
		})
	}); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// firstLine is a statement without comments on one line, cut where it gets long.
func firstLine(statement string) string {
	const longest = 120
	var words []string
	for line := range strings.Lines(statement) {
		text, _, _ := strings.Cut(line, "--")
		words = append(words, strings.Fields(text)...)
	}
	text := []rune(strings.Join(words, " "))
	return string(text[:min(len(text), longest)])
}
