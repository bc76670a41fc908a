package pgserver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"dispatcher/ledger/pgserver"
)

// parentDir, when set, makes this test binary the parent of a server in that folder.
const parentDir = "PGSERVER_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m)
}

// beParent starts a server, says where, and waits to be killed.
func beParent(dir string) {
	s, err := pgserver.Start(context.Background(), pgserver.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("URL", s.URL())
	select {}
}

func TestTheServerEndsWhenItsParentIsKilledAndItsFolderIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentDir+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "URL ") {
		t.Fatalf("%q, %v", line, err)
	}
	ask(t, strings.TrimSpace(strings.TrimPrefix(line, "URL ")), `create table kept (n int)`)
	orphan := postmaster(t, dir)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	// A new start waits for the orphan and finds its data.
	s := start(t, pgserver.Config{Dir: dir})
	if got := ask(t, s.URL(), `select count(*)::text from kept`); got != "0" {
		t.Error(got)
	}
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", orphan)); err == nil &&
		strings.HasPrefix(cwd, dir) {
		t.Errorf("process %d still runs", orphan)
	}
}
