package main

import (
	"bytes"
	"strings"
	"testing"
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
