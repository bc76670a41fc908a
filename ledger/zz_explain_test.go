package ledger_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestZZ(t *testing.T) {
	s := ledgertest.Server(t, map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "3ms", "auto_explain.log_analyze": "on", "auto_explain.log_triggers": "on","auto_explain.log_buffers":"on","auto_explain.log_parameter_max_length":"0",
		"log_min_duration_statement": "3ms",
	})
	if err := ledger.Migrate(t.Context(), s.URL()); err != nil {
		t.Fatal(err)
	}
	l := connect(t, ledger.Config{URL: s.SocketURL(), MaxConns: 1})
	apply(t, l, manyLimits("a"), manyLimits("b"), manyLimits("c"))
	for n := range 30 {
		t0 := time.Now()
		seen := claimAll(t, l, batch(fmt.Sprintf("b%06d", n*7919%1000000), 500), "a", "b", "c")
		t1 := time.Now()
		settleAll(t, l, accepted(seen.Messages))
		fmt.Println(n, t1.Sub(t0), time.Since(t1))
	}
	raw, _ := os.ReadFile(s.LogFile())
	os.WriteFile("/tmp/zz.log", raw, 0o644)
}
