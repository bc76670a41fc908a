package dispatch

// room is what a channel may take in one claim.
type room struct {
	left int // for every lane; negative when the channel holds more than it may
	kept int // how many more the first lane may take
	late bool
	// queue is how many messages wait for the channel in the database.
	queue int64
}

// has reports whether there is room for one more attempt.
func (r *room) has(firstLane bool) bool {
	return r.left > 0 || firstLane && r.left+r.kept > 0
}

// reason is why a message cannot have the channel when there is no room.
func (r *room) reason() string {
	if r.late {
		return bulkhead
	}
	return inFlight
}

// noRoom is why channel c must not have one more attempt under way in this process; empty when
// it may. A message waits for its first choice under inFlight, because a channel that answers
// promptly has room again within milliseconds; under bulkhead the rules of its route apply.
func (a *assigner) noRoom(t *task, c int) string {
	if a.snapshot.rooms == nil || a.snapshot.rooms[c].has(t.lane.Order == 0) {
		return ""
	}
	a.full.note(c, len(a.routing.Channels), t.row.Seq)
	return a.snapshot.rooms[c].reason()
}

// fullChannels counts, by channel, the messages of a claim that found no room on it. A message may
// look at its first choice twice.
type fullChannels struct {
	messages []int   // nil for none
	last     []int64 // the row that was counted last
}

// note counts the message of a row for channel c of so many.
func (f *fullChannels) note(c, channels int, row int64) {
	if f.messages == nil {
		f.messages, f.last = make([]int, channels), make([]int64, channels)
	} else if f.messages[c] > 0 && f.last[c] == row {
		return
	}
	f.messages[c]++
	f.last[c] = row
}

// fits is how many tasks, in their order, may be claimed before one has no room: a first choice
// that answers promptly is full, or all members of the route are. Claiming more would only make
// messages wait in the database. blocked are the channels that room is waited for; nil when all
// tasks fit.
func (r *Plan) fits(rooms []room, unready []string) (n int, blocked []int) {
	planned := make([]int, len(rooms))
	for i := range r.tasks {
		t := &r.tasks[i]
		if !t.wanted() || t.route == nil || t.row.SameKey != "" {
			continue
		}
		c, blocked := r.planFor(t, rooms, unready, planned)
		if blocked != nil {
			return i, blocked
		}
		if c >= 0 {
			planned[c]++
		}
	}
	return len(r.tasks), nil
}

// planFor is the channel that a task will probably take room on, -1 when nobody knows, or else
// those that it has to wait for. planned counts what was planned before.
func (r *Plan) planFor(
	t *task, rooms []room, unready []string, planned []int,
) (c int, blocked []int) {
	has := func(c int) bool {
		left := rooms[c]
		left.left -= planned[c]
		return left.has(t.lane.Order == 0)
	}
	open := func(c int) bool { return unready[c] == "" && r.routing.Channels[c].State.Takes() }
	if t.route.draws() && t.first >= 0 {
		c := t.route.Members[t.first]
		switch {
		case !open(c):
		case has(c):
			return c, nil
		case !rooms[c].late:
			return -1, []int{c}
		}
	}
	anyOpen := false
	for _, c := range t.route.Members {
		if open(c) {
			if anyOpen = true; has(c) {
				return c, nil
			}
		}
	}
	if anyOpen {
		return -1, t.route.Members
	}
	return -1, nil // it waits, or goes where something else than room decides
}

// keep drops the jobs from number n on: they follow in the next claim.
func (r *Plan) keep(n int) { r.jobs, r.tasks = r.jobs[:n], r.tasks[:n] }

// keepWanted drops jobs until at most n messages look for a channel.
func (r *Plan) keepWanted(n int) {
	for i := range r.tasks {
		if !r.tasks[i].wanted() {
			continue
		}
		if n--; n < 0 {
			r.keep(i)
			return
		}
	}
}

// share divides the slots of a claim between its jobs, of which it drops those that have none, and
// the due rows, whose number it returns. Older messages get a quarter where there is not enough for
// all.
func (r *Plan) share(slots, due int) int {
	wanted := r.wanted()
	if slots < wanted+due {
		due = min(due, max(slots-wanted, slots/4))
		r.keepWanted(slots - due)
	}
	return due
}
