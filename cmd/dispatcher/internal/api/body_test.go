package api_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/api"
	"dispatcher/config/tier"
)

// TestNoBodyTakesMuchMemory, whatever it holds: the schema names each wrong value of millions, and
// YAML makes a node of each.
func TestNoBodyTakesMuchMemory(t *testing.T) { //nolint:paralleltest // It counts allocations.
	s := newIntakeStage(t, access.Rate{}, brokenIntake{})
	zeros := func(n int) string { return "[0" + strings.Repeat(",0", n-1) + "]" }
	messages := func(n int) string { return `{"lane":"otp","messages":` + zeros(n) + `}` }
	objects := `{"lane":"otp","messages":[{` + strings.Repeat(`"a":[{}],`, 400_000) + `"a":1}]}`
	for name, c := range map[string]struct {
		path, body string
		want       int
		most       uint64 // MiB
	}{
		"two million messages":  {"/messages", messages(2_000_000), 413, 20},
		"a million objects":     {"/messages", objects, 413, 20},
		"as many as are read":   {"/messages", messages(200_000), 422, 200},
		"an array of a million": {"/messages/lookup", zeros(500_000), 413, 20},
		"a document of them":    {"/routing/validate", `{"document":"a: ` + zeros(500_000) + `"}`, 200, 200},
		"a larger document":     {"/routing/validate", `{"document":"a: ` + zeros(1_000_000) + `"}`, 200, 60},
		"one that is refused":   {"/routing/validate", `{"document":"a: ` + zeros(3_000_000) + `"}`, 413, 60},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := s.ask("admin", "POST", c.path, c.body)
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		if got.status != c.want || len(got.body) > 20_000 {
			t.Errorf("%s: status %d with %d bytes, want %d", name, got.status, len(got.body), c.want)
		}
		if allocated > c.most {
			t.Errorf("%s: %d MiB were allocated, want at most %d", name, allocated, c.most)
		}
	}
}

// slowIntake confirms nothing before it is released.
type slowIntake struct{ entered, released chan struct{} }

func (i slowIntake) Publish(_ context.Context, records []*kgo.Record) []error {
	select {
	case i.entered <- struct{}{}:
	case <-i.released:
	}
	<-i.released
	return make([]error, len(records))
}

// wait waits for n requests.
func (i slowIntake) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-i.entered:
		case <-time.After(tier.LongestWait):
			t.Fatal("a request does not come")
		}
	}
}

// TestLargeRequestsAtATimeAreBounded for each principal; others have a share of their own.
func TestLargeRequestsAtATimeAreBounded(t *testing.T) {
	t.Parallel()
	intake := slowIntake{make(chan struct{}), make(chan struct{})}
	s := newIntakeStage(t, access.Rate{}, intake)
	var large []string
	for i := range 60 {
		large = append(large, envelopeOf(fmt.Sprint(i), strings.Repeat(" ", 50_000)))
	}
	body := `{"lane":"otp","messages":[` + strings.Join(large, ",") + `]}`
	var asked sync.WaitGroup
	send := func(role string) {
		asked.Go(func() {
			if got := s.ask(role, "POST", "/messages", body); got.status != http.StatusAccepted {
				t.Errorf("%s: %+v", role, got)
			}
		})
		intake.wait(t, 1)
	}
	for range 5 {
		send("sender")
	}
	if got := s.ask("sender", "POST", "/messages", body); got.status !=
		http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Errorf("the sixth: %+v", got)
	}
	send("admin")
	close(intake.released)
	asked.Wait()
	if got := s.ask("sender", "POST", "/messages", body); got.status != http.StatusAccepted {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestAHundredSmallRequestsAtOnceAreAnswered, as the rate allows them.
func TestAHundredSmallRequestsAtOnceAreAnswered(t *testing.T) {
	t.Parallel()
	intake := slowIntake{make(chan struct{}), make(chan struct{})}
	s := newIntakeStage(t, access.Rate{}, intake)
	var asked sync.WaitGroup
	for i := range 100 {
		asked.Go(func() {
			body := `{"lane":"otp","messages":[` + envelopeOf(fmt.Sprint(i), "") + `]}`
			if got := s.ask("sender", "POST", "/messages", body); got.status != http.StatusAccepted {
				t.Errorf("got %+v", got)
			}
		})
	}
	intake.wait(t, 100)
	close(intake.released)
	asked.Wait()
}

func TestTheStreamsOfEachPrincipalAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	open := func(role string) (int, func()) {
		ctx, end := context.WithCancel(t.Context())
		t.Cleanup(end)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+api.Base+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.tokens[role])
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode, end
	}
	var ends []func()
	for range 32 {
		status, end := open("viewer")
		if status != http.StatusOK {
			t.Fatalf("stream %d: %d", len(ends)+1, status)
		}
		ends = append(ends, end)
	}
	if status, _ := open("viewer"); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", status)
	}
	if status, _ := open("operator"); status != http.StatusOK {
		t.Errorf("another user: %d", status)
	}
	ends[0]()
}

// TestOneLongReadAtATime: the others are refused, so that they do not take the connections that
// pauses, guards and reloads of the routing need.
func TestOneLongReadAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	end := s.ledger.Reports.LongRead(t.Context())
	for _, busy := range []bool{true, false} {
		var asked sync.WaitGroup
		for path, body := range map[string]string{
			"/messages/lookup": `{"number":"+447700900123"}`, "/reports/daily": "", "/reports/range": "",
			"/reports/contracts": "",
		} {
			asked.Go(func() {
				method := http.MethodGet
				if body != "" {
					method = http.MethodPost
				}
				got := s.ask("admin", method, path, body)
				if refused := got.status == http.StatusTooManyRequests; refused != busy ||
					refused != (got.header.Get("Retry-After") != "") {
					t.Errorf("%s while another one runs (%t): %+v", path, busy, got)
				}
			})
		}
		asked.Wait()
		if busy {
			end()
		}
	}
}

// TestALongRangeIsRefusedBeforeItsDaysAreLookedUp: those of two thousand years take a while.
func TestALongRangeIsRefusedBeforeItsDaysAreLookedUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	for query, want := range map[string]int{
		"from=0001-01-01&to=2026-01-01": 422, "from=2024-12-31&to=2026-01-01": 422,
		"from=2025-01-01&to=2026-01-01": 200,
	} {
		if got := s.ask("finance", "GET", "/reports/range?"+query, ""); got.status != want ||
			want == 422 && !strings.Contains(got.body, "more than 366 days") {
			t.Errorf("%s: %+v, want %d", query, got, want)
		}
	}
}
