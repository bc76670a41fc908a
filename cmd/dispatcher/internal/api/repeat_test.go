package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/access"
)

// sql runs statements in the database of the stage, and returns the number in the last one's row.
func (s *stage) sql(text string) (n int) {
	s.t.Helper()
	db, err := pgx.Connect(s.t.Context(), s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = db.Close(s.t.Context()) }()
	for one := range strings.SplitSeq(text, ";;") {
		rows, err := db.Query(s.t.Context(), one)
		if err != nil {
			s.t.Fatal(err)
		}
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				s.t.Fatal(err)
			}
		}
		if rows.Err() != nil {
			s.t.Fatal(rows.Err())
		}
	}
	return n
}

const (
	stored  = `select count(*)::int from dispatcher.api_requests`
	version = `select max(version)::int from dispatcher.routing_versions`
)

// TestAKeyIsTakenAfterTheCallerWasChecked: a request that is refused for its token, its role or its
// rate takes no key and costs no write, and a repetition counts as a request.
func TestAKeyIsTakenAfterTheCallerWasChecked(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{PerSecond: 1e-3, Burst: 2})
	const body = `{"lanes":["bulk"],"reason":"wrong text"}`
	ask := func(role string) answer {
		return s.ask(role, "POST", "/pause", body, "Idempotency-Key", "k-1")
	}
	for role, want := range map[string]int{"": 401, "finance": 403} {
		if got := ask(role); got.status != want || s.sql(stored) != 0 {
			t.Errorf("%q: %+v, and %d keys are taken", role, got, s.sql(stored))
		}
	}
	for range 3 { // what the role may not do does not count
		if got := ask("finance"); got.status != http.StatusForbidden {
			t.Errorf("finance: %+v", got)
		}
	}
	for i, want := range []int{200, 200, 429} {
		if got := ask("operator"); got.status != want ||
			(got.header.Get("Idempotency-Replayed") != "") != (i == 1) {
			t.Errorf("request %d: %+v", i+1, got)
		}
	}
}

// TestAKeyThatIsNotUTF8IsAMistakeOfTheCaller and no failure of the database.
func TestAKeyThatIsNotUTF8IsAMistakeOfTheCaller(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	got := s.ask("operator", "POST", "/pause", `{"all":true,"reason":"x"}`, "Idempotency-Key",
		"k\xff")
	if got.status != http.StatusUnprocessableEntity ||
		got.header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(got.body, "UTF-8") {
		t.Errorf("%+v", got)
	}
	if n := s.sql(version); n != 1 {
		t.Errorf("it was carried out: version %d", n)
	}
}

// TestAFailedChangeMayBeRepeatedWhenNothingCameOfIt: with its key, at once. What may have happened
// is not done twice.
func TestAFailedChangeMayBeRepeatedWhenNothingCameOfIt(t *testing.T) {
	t.Parallel()
	const fail = `create function fail() returns trigger language plpgsql as
		$$begin %s; return new; end$$;;
		create constraint trigger failing after insert on dispatcher.routing_versions
		deferrable initially deferred for each row execute function fail()`
	const unfail = `drop trigger failing on dispatcher.routing_versions`
	for name, c := range map[string]struct {
		broken, whole string
		repeated      int
		versions      int
	}{
		"the change was rolled back": {
			strings.Replace(fail, "%s", "raise exception 'no'", 1), unfail, http.StatusOK, 2,
		},
		"the routing could not be read": {
			`alter table dispatcher.routing_versions rename to away`,
			`alter table dispatcher.away rename to routing_versions`, http.StatusOK, 2,
		},
		"the connection was lost while it was committed": {
			strings.Replace(fail, "%s", "perform pg_terminate_backend(pg_backend_pid())", 1),
			unfail, http.StatusConflict, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, access.Rate{})
			s.t = t
			ask := func() answer {
				return s.ask("operator", "POST", "/pause", `{"all":true,"reason":"x"}`,
					"Idempotency-Key", "k")
			}
			s.sql(c.broken)
			if got := ask(); got.status < 500 {
				t.Fatalf("%+v", got)
			}
			s.sql(c.whole)
			if got := ask(); got.status != c.repeated {
				t.Errorf("repeated: %+v", got)
			}
			if got := ask(); got.status != c.repeated {
				t.Errorf("once more: %+v", got)
			}
			if n := s.sql(version); n != c.versions {
				t.Errorf("there are %d versions, want %d", n, c.versions)
			}
		})
	}
}

// TestATestMessageIsNotSentTwiceWhenKafkaDidNotAnswer: it may be in its topic.
func TestATestMessageIsNotSentTwiceWhenKafkaDidNotAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ask := func() answer {
		return s.ask("operator", "POST", "/channels/a/test",
			`{"to":"+447700900123","text":"hello","reason":"x"}`, "Idempotency-Key", "k")
	}
	s.mu.Lock()
	s.broken = errors.New("no answer")
	s.mu.Unlock()
	if got := ask(); got.status != http.StatusServiceUnavailable {
		t.Fatalf("%+v", got)
	}
	s.mu.Lock()
	s.broken = nil
	s.mu.Unlock()
	if got := ask(); got.status != http.StatusConflict || len(s.published) != 0 {
		t.Errorf("repeated: %+v, published %d", got, len(s.published))
	}
}
