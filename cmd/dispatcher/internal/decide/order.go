package decide

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dispatcher/ledger"
)

// urgent: a message this near to its deadline goes before the others of its lane.
const urgent = time.Minute

// taskOrder is what the order of a task depends on, most significant field first.
type taskOrder struct {
	lane     int
	deadline int64  // in microseconds; the greatest number for a message that is not urgent
	number   int    // how many messages of its lane and tenant go before it
	tenant   uint64 // a hash with the time, so that no tenant is first in every claim
	age      int    // due rows before new ones, older before younger

	task int // which it is
}

// compareOrder is written out for speed: claims sort while the channels are locked.
func compareOrder(a, b taskOrder) int {
	if c := cmp.Compare(a.lane, b.lane); c != 0 {
		return c
	}
	if c := cmp.Compare(a.deadline, b.deadline); c != 0 {
		return c
	}
	if c := cmp.Compare(a.number, b.number); c != 0 {
		return c
	}
	if c := cmp.Compare(a.tenant, b.tenant); c != 0 {
		return c
	}
	return cmp.Compare(a.age, b.age)
}

// tenantOf identifies a queue of messages; the queues of one lane take turns.
type tenantOf struct {
	lane   int
	tenant string
}

// ordered lists the tasks that need a channel in the order in which they choose. Lanes come first.
// Within a lane, messages near their deadline go first, the nearest before others. Then tenants
// take turns, so that one tenant's campaign cannot starve another tenant. Within a tenant, due rows
// go before new ones, and older before younger.
func ordered(tasks []Task, intakes []ledger.Intake, now time.Time) []int {
	due, fresh := make([]int, 0, len(tasks)), make([]int, 0, len(tasks))
	for i := range tasks {
		if intakes[i] == ledger.Due {
			due = append(due, i)
		} else if intakes[i] == ledger.Fresh && (tasks[i].Wanted() || tasks[i].cancelledBefore) {
			fresh = append(fresh, i)
		}
	}
	slices.SortFunc(
		due, func(a, b int) int { return cmp.Compare(tasks[a].Row.Seq, tasks[b].Row.Seq) },
	)
	all, queues := append(due, fresh...), map[tenantOf]*queue{}
	order := make([]taskOrder, len(all))
	for i, at := range all {
		order[i] = newTaskOrder(&tasks[at], queues, now)
		order[i].age, order[i].task = i, at
	}
	slices.SortFunc(order, compareOrder)
	for i := range order {
		all[i] = order[i].task
	}
	return all
}

// queue counts the messages of a lane and tenant that are ordered already.
type queue struct {
	length int
	tenant uint64
}

// newTaskOrder appends the task to its tenant's queue, unless it is urgent.
func newTaskOrder(t *Task, queues map[tenantOf]*queue, now time.Time) taskOrder {
	one := taskOrder{lane: t.Lane.Order, deadline: math.MaxInt64}
	if t.Row.ExpiresAt.Sub(now) < urgent {
		one.deadline = t.Row.ExpiresAt.UnixMicro()
		return one
	}
	key := tenantOf{t.Lane.Order, t.Row.Tenant}
	q := queues[key]
	if q == nil {
		q = &queue{tenant: mixed(t.Row.Tenant, now)}
		queues[key] = q
	}
	one.number, one.tenant = q.length, q.tenant
	q.length++
	return one
}

// mixed hashes a name and a time (FNV-1a).
func mixed(name string, now time.Time) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for at, i := uint64(now.UnixMicro()), 0; i < 8; i++ {
		h = (h ^ at>>(8*i)&0xff) * prime
	}
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return h ^ h>>32
}
