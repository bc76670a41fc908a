package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// TestACollectorThatIsAwayIsLoggedOnce: it is logged once, although each error names another port.
func TestACollectorThatIsAwayIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &App{outages: outage.NewLog(zerolog.New(&out).Level(zerolog.WarnLevel))}
	a.tracesFailed(errors.New("read tcp 127.0.0.1:50001->127.0.0.1:4318: reset"))
	a.tracesFailed(errors.New("read tcp 127.0.0.1:50002->127.0.0.1:4318: reset"))
	if got := out.String(); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, `"what":"traces"`) || !strings.Contains(got, "50001") {
		t.Errorf("the log is\n%s", got)
	}
}
