package decide

// Room is how many attempts a channel may still have in flight, for one claim.
type Room struct {
	ShareLeft     int // left of its share, for every lane; negative when the channel holds more
	FirstLaneLeft int // left of the part of its share that only the first lane may take
	AnsweredLeft  int // left of what its rate of answers allows beyond its share
	BorrowLeft    int // how many it may take beyond these when no other channel needs them
	// Spare is what all channels together have left for AnsweredLeft and BorrowLeft; nil for nothing.
	Spare    *Spare
	PassOver bool  // it fails or has too few senders: other channels take the message
	NoWait   bool  // no claim waits for it
	Waiting  int64 // how many messages wait for the channel in the database
}

// Spare is what is left of the in-flight attempts that all channels together may have.
type Spare struct {
	Unshared   int // in no channel's share, and not in use
	Unentitled int // also outside what the channels are entitled to
}

// Has reports whether there is room for one more attempt.
func (r *Room) Has(firstLane bool) bool {
	return r.ShareLeft > 0 || r.extends(firstLane) || firstLane && r.ShareLeft+r.FirstLaneLeft > 0
}

// extends reports whether the channel may have more than its share.
func (r *Room) extends(firstLane bool) bool {
	if r.Spare == nil {
		return false
	}
	kept := r.FirstLaneLeft
	if firstLane {
		kept = 0
	}
	return r.Spare.Unshared > kept &&
		(r.AnsweredLeft > 0 || r.BorrowLeft > 0 && r.Spare.Unentitled > kept)
}

// Take counts one more attempt.
func (r *Room) Take(firstLane bool) {
	switch {
	case r.ShareLeft > 0 || !r.extends(firstLane):
		r.ShareLeft--
		return
	case r.AnsweredLeft > 0:
		r.AnsweredLeft--
	default:
		r.BorrowLeft--
		r.Spare.Unentitled--
	}
	r.Spare.Unshared--
}

// Reason is why a message cannot have the channel when there is no room.
func (r *Room) Reason() string {
	if r.PassOver {
		return Bulkhead
	}
	return InFlight
}

// noRoom is why channel c must not have one more attempt in flight in this process; empty when it
// may. With in_flight a message waits for its first choice, because a channel that answers promptly
// has room again within milliseconds. With bulkhead the rules of the route apply.
func (a *assigner) noRoom(t *Task, c int) string {
	if a.snapshot.Rooms == nil || a.snapshot.Rooms[c].Has(t.Lane.Order == 0) {
		return ""
	}
	a.full.note(c, len(a.routing.Channels), t.Row.Seq)
	return a.snapshot.Rooms[c].Reason()
}

// fullChannels counts, by channel, the messages of a claim that found no room on it. Each message
// counts once, though it may check its first choice twice.
type fullChannels struct {
	messages []int   // nil for none
	last     []int64 // the row that was counted last
}

// note counts the message of a row for channel c; channels is how many channels there are.
func (f *fullChannels) note(c, channels int, row int64) {
	if f.messages == nil {
		f.messages, f.last = make([]int, channels), make([]int64, channels)
	} else if f.messages[c] > 0 && f.last[c] == row {
		return
	}
	f.messages[c]++
	f.last[c] = row
}

// Fits is how many tasks, in their order, can be claimed before one has no room on a channel that
// will soon have room: its first choice, or any channel of a route that does not draw. Claiming
// more would only make messages wait in the database. all is true when none has to wait for room.
// Fits counts the planned attempts in rooms.
func (p *Plan) Fits(rooms []Room, unready []string) (n int, all bool) {
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if !t.Wanted() {
			continue
		}
		c, soon := p.planFor(t, rooms, unready)
		if soon {
			return i, false
		}
		if c >= 0 {
			rooms[c].Take(t.Lane.Order == 0)
		}
	}
	return len(p.Tasks), true
}

// planFor is the channel on which a task will probably take room; -1 when that is not known. soon
// is true when there is no room yet but soon will be. A message for a slow channel is claimed and
// waits in the database: in memory it would delay others until the channel answers.
func (p *Plan) planFor(t *Task, rooms []Room, unready []string) (c int, soon bool) {
	open := func(c int) bool { return unready[c] == "" && p.Routing.Channels[c].State.Takes() }
	has := func(c int) bool { return rooms[c].Has(t.Lane.Order == 0) }
	if t.Route.Draws() && t.First >= 0 {
		c := t.Route.Members[t.First]
		switch {
		case !open(c):
		case has(c):
			return c, false
		case !rooms[c].PassOver:
			return -1, !rooms[c].NoWait
		}
	}
	for _, c := range t.Route.Members {
		if open(c) {
			if has(c) {
				return c, false
			}
			soon = soon || !rooms[c].NoWait
		}
	}
	return -1, soon // it waits, or something other than room decides
}

// Keep drops the jobs from number n on: they follow in the next claim.
func (p *Plan) Keep(n int) { p.Jobs, p.Tasks = p.Jobs[:n], p.Tasks[:n] }

// keepWanted drops jobs until at most n messages look for a channel.
func (p *Plan) keepWanted(n int) {
	for i := range p.Tasks {
		if !p.Tasks[i].Wanted() {
			continue
		}
		if n--; n < 0 {
			p.Keep(i)
			return
		}
	}
}

// Share divides the slots of a claim between its jobs and the due rows, and returns the number of
// due rows. Jobs without a slot are dropped from the plan. If slots are short, due rows get at
// least a quarter.
func (p *Plan) Share(slots, due int) int {
	wanted := p.Wanted()
	if slots < wanted+due {
		due = min(due, max(slots-wanted, slots/4))
		p.keepWanted(slots - due)
	}
	return due
}
