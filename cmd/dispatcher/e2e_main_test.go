package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/ledger/ledgertest"
)

// The end-to-end tests run the built program as real processes and read what happened
// from the other side: the carriers' own logs, the broker, and the database by SQL. Files:
//
//	e2e_main_test.go      the binary, waiting
//	e2e_process_test.go   one process of it
//	e2e_skew_test.go      the binary with a clock that is wrong
//	e2e_stage_test.go     a broker, a database, carriers and the processes between them
//	e2e_kafka_test.go     the broker and what goes through it
//	e2e_carrier_test.go   what the carriers saw
//	e2e_ledger_test.go    what the audit views say
//
// and one file per story.

// sideBySide is how many stories run at once: they wait more than they work.
const sideBySide = 6

func TestMain(m *testing.M) {
	flag.Parse()
	if runtime.GOMAXPROCS(0) < sideBySide {
		_ = flag.Set("test.parallel", strconv.Itoa(sideBySide)) // a flag that testing always has
	}
	code := m.Run()
	removeBinary()
	ledgertest.Close()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// built is the program under test, made once per test process.
var built struct {
	once   sync.Once
	folder string
	path   string
	err    error
}

// binary returns the path of the program, building it the first time.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		built.folder, built.err = os.MkdirTemp("", "dispatcher-e2e-")
		if built.err != nil { //nolint:usetesting // It serves all tests.
			return
		}
		built.path = filepath.Join(built.folder, "dispatcher")
		var out []byte
		out, built.err = exec.Command("go", "build", "-o", built.path, ".").CombinedOutput()
		if built.err != nil {
			fmt.Fprintf(os.Stderr, "%s", out)
		}
	})
	if built.err != nil {
		t.Fatalf("build the program under test: %v", built.err)
	}
	return built.path
}

func removeBinary() {
	if built.folder != "" {
		_ = os.RemoveAll(built.folder) // a leftover in the temporary folder is harmless
	}
}

// eventually waits until ok, at most for a while.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(within); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}
