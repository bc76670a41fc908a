package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheProgressBarCountsMessages(t *testing.T) {
	t.Parallel()
	bar := barTemplate.New(1000).Set("prefix", "publishing").SetWidth(60)
	if err := bar.SetCurrent(250).Err(); err != nil {
		t.Fatal(err)
	}
	got := bar.String()
	if !strings.HasPrefix(got, "publishing 250 / 1000 [") ||
		!strings.HasSuffix(strings.TrimRight(got, " "), "] 25.00%") {
		t.Errorf("before the rate is known: got %q", got)
	}
}

func TestNoProgressIsDrawnWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	show, wipe := (&cli{err: &out}).progress("publishing", 10)
	show(5)
	wipe()
	if out.Len() > 0 {
		t.Errorf("drawn: %q", &out)
	}
}

// TestProgressIsDrawnWhenWorkTakesLong: work that ends soon draws nothing, and what was drawn is
// wiped at the end.
func TestProgressIsDrawnWhenWorkTakesLong(t *testing.T) {
	t.Parallel()
	for what, total := range map[string]int64{"adding up 3 / 7": 7, "adding up 3 1.": 0} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			_, wipe := drawProgress(&out, "adding up", total)
			time.Sleep(progressAfter / 2)
			wipe()
			time.Sleep(progressAfter)
			if out.Len() > 0 {
				t.Errorf("drawn: %q", &out)
			}
			show, wipe := drawProgress(&out, "adding up", total)
			show(3)
			time.Sleep(progressAfter + time.Second + time.Second/2)
			wipe()
			show(4)
			wipe()
			if !strings.Contains(out.String(), what) {
				t.Errorf("drawn: %q, want %q", &out, what)
			}
		})
	}
}
