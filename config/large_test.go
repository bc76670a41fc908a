package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dispatcher/config"
)

// counted writes the numbers below n in a format, with commas.
func counted(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+",", i)
	}
	return b.String()
}

// TestTheChecksOfALargeDocumentTakeNoTimeToSpeakOf, because everybody who may look at the routing
// may have a document checked. Where each name was compared with all others, these took minutes.
func TestTheChecksOfALargeDocumentTakeNoTimeToSpeakOf(t *testing.T) {
	t.Parallel()
	lanes := "lanes: {" + counted(40_000, "l%d: {}") + "}\n"
	texts := []string{
		"inbound: {numbers: {" + counted(70_000, `"%06d": {}`) + "}}",
		"inbound: {keywords: {stop: [" + counted(70_000, "a%d") + "], start: [" +
			counted(70_000, "b%d") + "]}}",
		lanes + "paused: {lanes: [" + counted(40_000, "l%d") + "]}",
		lanes + "paused: {lanes: [" + counted(40_000, "m%d") + "]}",
	}
	began := time.Now()
	for i, text := range texts {
		_, err := config.ParseDocument("routing.yaml", []byte(withInbound(text)))
		if unknown := i == len(texts)-1; (err != nil) != unknown {
			t.Errorf("document %d: error %v", i, err)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %s, want less than a minute even on a busy machine", took)
	}
}
