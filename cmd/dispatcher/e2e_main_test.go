package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// The end-to-end tests run the built program as real processes and read what happened
// from the other side: the carriers' own logs, the broker, and the database by SQL. Files:
//
//	e2e_main_test.go      the program under test, waiting
//	e2e_process_test.go   one process of it
//	e2e_skew_test.go      the binary with a clock that is wrong
//	e2e_stage_test.go     a broker, a database, carriers and the processes between them
//	e2e_kafka_test.go     the broker and what goes through it
//	e2e_carrier_test.go   what the carriers saw
//	e2e_ledger_test.go    what the audit views say
//
// and one file per story.

// sideBySide is how many stories run at once. They mostly wait, those of the long tier for minutes.
var sideBySide = tier.Size(6, 8)

// runAsProgram is the variable that makes the test binary run main. This saves the link of a second
// binary.
const runAsProgram = "RUN_AS_PROGRAM"

func TestMain(m *testing.M) {
	const long = 30 * time.Second // TestDoctorNamesEachFaultWithItsFix waits for the end of one
	reachTimeout, checkTimeout, healthTimeout = long, long, long
	if os.Getenv(runAsProgram) != "" {
		main() // does not return
	}
	// The tests do not use the settings of the user's environment.
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "DISPATCHER_") {
			_ = os.Unsetenv(name) // cannot fail: it is set
		}
	}
	tier.Parallel(sideBySide)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent) // as in "run"
	}
	// Brokers and servers create and remove thousands of files.
	folder, err := ledgertest.TempDir()
	if err == nil {
		err = os.Setenv("TMPDIR", folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	ledgertest.Close()
	_ = os.RemoveAll(folder) // leftovers in the temporary folder do no harm
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// binary returns the path of the program under test: this test binary, with the race detector if
// the tests use it.
func binary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
