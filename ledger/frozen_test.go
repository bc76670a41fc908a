package ledger_test

import (
	"context"
	"io"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestASessionThatIsFrozenInACopyIsEnded: the server applies no timeout while it waits for data.
// Sessions that began a moment ago, and those of others, are left alone.
func TestASessionThatIsFrozenInACopyIsEnded(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: url}) // with the login of the sessions
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	watch := raw(t, url)
	for _, name := range []string{"dispatcher", "psql"} {
		session := raw(t, url)
		if _, err := session.Exec(t.Context(), `set application_name = '`+name+`'; begin;
			create temp table frozen (n int)`); err != nil {
			t.Fatal(err)
		}
		data, frozen := io.Pipe()
		copied := make(chan error, 1)
		go func() {
			_, err := session.PgConn().CopyFrom(context.WithoutCancel(t.Context()), data,
				`copy frozen from stdin`)
			copied <- err
		}()
		if n, err := l.EndFrozen(t.Context(), time.Hour); n != 0 || err != nil {
			t.Errorf("%s: %d sessions were ended that began just now, %v", name, n, err)
		}
		pid, ended, gone := session.PgConn().PID(), 0, name == "dispatcher"
		tier.Eventually(t, "the session is seen", func() bool {
			n, err := l.EndFrozen(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			ended += n
			state := scalar[string](t, watch, `
				select case count(*) when 0 then 'gone' else coalesce(max(wait_event), 'runs') end
				from pg_stat_activity where pid = $1`, pid)
			return gone && state == "gone" || !gone && state == "ClientRead"
		})
		if (ended > 0) != gone {
			t.Errorf("%s: %d sessions were ended", name, ended)
		}
		_ = frozen.Close()
		if err := <-copied; (err != nil) != gone {
			t.Errorf("%s: COPY ended with %v", name, err)
		}
	}
}
