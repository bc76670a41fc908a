package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// TestNobodyHasTwoTurnsWhileAnotherOfItsLaneWaits: between two claims that pick up rows of one
// tenant, every other tenant that had rows in that lane all the time gets some picked up. That is
// so for any number of tenants and lanes, any size of claims, and any number of claims that pick up
// rows of another lane only.
func TestNobodyHasTwoTurnsWhileAnotherOfItsLaneWaits(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	tier.Check(t, func(rt *rapid.T) {
		execute(t, db, `with queued as (delete from dispatcher.due returning seq)
			delete from dispatcher.messages where seq in (select seq from queued)`)
		line := turnsLine{
			t: t, db: db, waiting: map[string]int{},
			passed: map[string]map[string]bool{},
		}
		l.LetGo()
		for range rapid.IntRange(4, 16).Draw(rt, "rounds") {
			line.arrive(rt)
			for range rapid.IntRange(1, 3).Draw(rt, "claims") {
				picked, _ := pick(t, l, rapid.IntRange(1, 9).Draw(rt, "due"), true)
				if why := line.left(picked); why != "" {
					rt.Fatal(why)
				}
			}
		}
	})
}

// turnsLine is what a test knows of a queue, by lane/tenant.
type turnsLine struct {
	t       *testing.T
	db      *pgx.Conn
	waiting map[string]int
	passed  map[string]map[string]bool // by tenant that waits: who has had a turn meanwhile
}

// arrive stores two messages each of some tenants of all lanes, fewer of the urgent ones.
func (q *turnsLine) arrive(rt *rapid.T) {
	var lanes, tenants []string
	most := 4
	for _, lane := range []string{"otp", "transactional", "bulk"} {
		if lane == "bulk" {
			most = 16
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 11), 0, most).Draw(rt, lane) {
			tenant := fmt.Sprintf("t%02d", n)
			lanes, tenants = append(lanes, lane), append(tenants, tenant)
			q.waiting[lane+"/"+tenant] += 2
		}
	}
	store(q.t, q.db, "id, lane, tenant, state, next_at", `
		select gen_random_uuid(), lane, tenant, 'waiting', now()
		from unnest($1::text[], $2::text[]) as n(lane, tenant), generate_series(1, 2)`,
		lanes, tenants)
}

// laneOf is the lane of a lane/tenant.
func laneOf(name string) string {
	lane, _, _ := strings.Cut(name, "/")
	return lane
}

// left removes what a claim has picked up from the queue. It returns a sentence if a tenant had two
// turns while another one waited, else nothing.
func (q *turnsLine) left(picked map[string]int) string {
	for name, n := range picked {
		if q.waiting[name] -= n; q.waiting[name] == 0 {
			delete(q.waiting, name)
		}
		delete(q.passed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(q.waiting)) {
		if picked[name] > 0 {
			continue
		}
		if q.passed[name] == nil {
			q.passed[name] = map[string]bool{}
		}
		for other := range picked {
			if laneOf(other) != laneOf(name) {
				continue
			}
			if q.passed[name][other] {
				return fmt.Sprintf("%s had two turns while %s waited", other, name)
			}
			q.passed[name][other] = true
		}
	}
	return ""
}
