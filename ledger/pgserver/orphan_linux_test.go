package pgserver_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dispatcher/ledger/pgserver"
)

func TestTheServerEndsWhenItsParentIsKilledAndItsFolderIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := existing(t)
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
