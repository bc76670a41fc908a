package steer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// twoRamps starts one ramp on each route, the one on default first.
func (r *rig) twoRamps() (first, second ledger.Ramp) {
	r.t.Helper()
	first = r.start(ledger.Ramp{To: m("a", "65", "b", "15", "c", "20"), Steps: 2, Every: time.Hour})
	second, err := r.ledger.Ramps.Start(r.t.Context(), ledger.Ramp{
		Route: "second", Author: "alice", From: m("a", "1", "b", "1"), To: m("a", "3", "b", "1"),
		Steps: 2, Every: time.Hour,
	}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return first, second
}

// TestABadRampStopsNeitherOtherRampsNorHealth: the database refuses to move one ramp.
func TestABadRampStopsNeitherOtherRampsNorHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.twoRamps()
	r.exec(`create function refuse_ramp() returns trigger language plpgsql as 'begin raise ` +
		`exception ''refused''; end'`)
	r.exec(`create trigger refuse before update on dispatcher.ramps for each row when ` +
		`(old.route = 'default') execute function refuse_ramp()`)
	r.carry("a", provider.Refused, 6)
	s := r.steerer()
	err := s.round(t.Context())
	if err == nil || strings.Count(err.Error(), "ramp 1 of route default") != 1 {
		t.Errorf("error %v, want the bad ramp once", err)
	}
	if at := r.ramp(first.ID).Step; at != 0 {
		t.Errorf("the bad ramp is at step %d", at)
	}
	if at := r.ramp(second.ID).Step; at != 1 {
		t.Errorf("the good ramp is at step %d", at)
	}
	if _, doc := r.current(); effective(doc)["a"] != "18.75" {
		t.Errorf("health weighting has a at %s", effective(doc)["a"])
	}
	r.exec(`drop trigger refuse on dispatcher.ramps`)
	r.round(s)
	if at := r.ramp(first.ID).Step; at != 1 {
		t.Errorf("after it was repaired: step %d", at)
	}
}

// TestARampBehindALockStopsNeitherOtherRampsNorHealth: a lock is held for longer than one move may
// take.
func TestARampBehindALockStopsNeitherOtherRampsNorHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.twoRamps()
	r.carry("a", provider.Refused, 6)
	holder, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close(context.WithoutCancel(t.Context())) })
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from dispatcher.ramps where id = $1 for update`,
		first.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s := r.steerer()
	err = s.round(t.Context())
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > longestRound {
		t.Errorf("after %s: %v", took, err)
	}
	if at := r.ramp(second.ID).Step; at != 1 {
		t.Errorf("the good ramp is at step %d", at)
	}
	if _, doc := r.current(); effective(doc)["a"] != "18.75" {
		t.Errorf("health weighting has a at %s", effective(doc)["a"])
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.round(s)
	if at := r.ramp(first.ID).Step; at != 1 {
		t.Errorf("after the lock was released: step %d", at)
	}
}

func TestACheckThatHangsIsAbandonedForTheRestOfTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := failures{}
		hang := func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() }
		began := time.Now()
		for range 3 {
			if moved, err := failed.try(t.Context(), "ramp 1", hang); moved || err != nil {
				t.Errorf("got %v, error %v", moved, err)
			}
		}
		if took := time.Since(began); took != longestTry {
			t.Errorf("three tries took %s", took)
		}
		if moved, err := failed.try(t.Context(), "ramp 2", func(context.Context) (bool, error) {
			return true, nil
		}); !moved || err != nil {
			t.Errorf("the next one: %v %v", moved, err)
		}
		bad := errors.New("bad")
		_, _ = failed.try(t.Context(), "route default", func(context.Context) (bool, error) {
			return true, bad
		})
		if err := failed.join(); !errors.Is(err, bad) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("joined: %v", err)
		}
		if diff := cmp.Diff("ramp 1: context deadline exceeded\nroute default: bad",
			failed.join().Error()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnOutdatedRoundEnds: the remaining decisions of the round are outdated.
func TestAnOutdatedRoundEnds(t *testing.T) {
	t.Parallel()
	failed := failures{}
	_, err := failed.try(t.Context(), "ramp 1", func(context.Context) (bool, error) {
		return false, ledger.ErrRampMoved
	})
	if !outrun(err) || failed.join() != nil {
		t.Errorf("%v, and failures %v", err, failed.join())
	}
}
