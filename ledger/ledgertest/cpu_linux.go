package ledgertest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPUTime is the CPU time that this process and its servers have used so far.
func CPUTime(tb testing.TB) time.Duration {
	tb.Helper()
	const tick = time.Second / 100 // the unit of /proc, whatever the kernel's own is: proc(5)
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		tb.Fatal(err)
	}
	parents, ticks := map[string]string{}, map[string]int64{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended since
		}
		// The name of the process, in brackets, may have spaces. Its state and its parent follow.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		id := filepath.Base(filepath.Dir(file))
		parents[id] = fields[1]
		for _, used := range fields[11:15] { // user and system, then those of children that have ended
			n, err := strconv.ParseInt(used, 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			ticks[id] += n
		}
	}
	self, total := strconv.Itoa(os.Getpid()), int64(0)
	for id, n := range ticks {
		for id != self && id != "" {
			id = parents[id]
		}
		if id == self {
			total += n
		}
	}
	return time.Duration(total) * tick
}
