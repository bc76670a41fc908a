package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Freeze stops the processes of the primary, as if its host hung: connections stay open and get no
// answers. thaw continues them. They are also continued at the end of the test, and when the test
// process is killed.
func (p *Pair) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	var file string
	if err := conn.QueryRow(t.Context(), `select pg_read_file('postmaster.pid')`).
		Scan(&file); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(file, "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{postmaster}
	thaw = sync.OnceFunc(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been ended
		}
		// t.Context has ended when cleanups run
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	t.Cleanup(thaw)
	signal(t, postmaster, syscall.SIGSTOP) // first, so that it forks no more
	var sessions []int
	if err := conn.QueryRow(t.Context(),
		`select array_agg(pid order by pid = pg_backend_pid()) from pg_stat_activity`).
		Scan(&sessions); err != nil {
		t.Fatal(err)
	}
	pids = append(pids, sessions...)
	thawWhenOrphaned(t, pids)
	for _, pid := range sessions { // the one that was asked comes last
		signal(t, pid, syscall.SIGSTOP)
	}
	return thaw
}

// thawWhenOrphaned starts a shell that continues the processes when the test process has ended.
// While they are stopped they cannot notice that themselves, and would stay stopped.
func thawWhenOrphaned(t testing.TB, pids []int) {
	t.Helper()
	args := []string{"-c", `read _; kill -CONT "$@" 2>/dev/null`, "sh"}
	for _, pid := range pids {
		args = append(args, strconv.Itoa(pid))
	}
	cmd := exec.Command("sh", args...) //nolint:noctx // It is to outlive this process.
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lifeline.Close() // the shell now continues processes that run already
		_ = cmd.Wait()
	})
}

func signal(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// WaitForNobody makes each commit on the server at url wait for a standby that does not exist,
// until enough is called.
func WaitForNobody(t testing.TB, url string) (enough func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	must := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	must(`set synchronous_commit = local`)
	must(`alter system set synchronous_standby_names = 'nobody'`)
	must(`select pg_reload_conf()`)
	// The new setting takes effect only when another process of the server has read it.
	for commits(t, url, fmt.Sprintf("probe_%d", time.Now().UnixNano())) {
		pause(t.Context())
	}
	return func() {
		t.Helper()
		must(`alter system reset synchronous_standby_names`)
		must(`select pg_reload_conf()`)
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// commits reports whether a commit is answered within 300 ms.
func commits(t testing.TB, url, table string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		defer conn.Close(t.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
		_, err = conn.Exec(ctx, `create table `+table+` ()`)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}
