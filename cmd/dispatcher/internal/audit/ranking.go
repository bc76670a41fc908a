package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector"
)

// choice is a stored ranking and its result.
type choice struct {
	ranking *decide.Ranking
	attempt int       // number of the attempt; 0 for a wait
	channel string    // of the attempt; empty for a wait
	at      time.Time // of the claim; zero for a wait, whose time is not known
}

// waits reports whether the result was to wait.
func (ch *choice) waits() bool { return ch.attempt == 0 }

// read decodes a stored ranking; nil when there is none, or when it is unreadable, which is a
// mismatch.
func (c *check) read(attempt int, raw []byte) *decide.Ranking {
	r, err := decide.ReadRanking(raw)
	if err != nil {
		c.differs(attempt, whatRanking, "unreadable", "readable")
		return nil
	}
	return r
}

// waited checks the ranking of the last wait, which was decided after the attempts in p.
func (c *check) waited(ranking *decide.Ranking, p *progress) error {
	e, err := c.under(0, ranking.Version)
	if err != nil || e == nil {
		return err
	}
	c.notPast(0, e, c.record.Message.ReceivedAt)
	if p.attempts > 0 {
		c.notPast(0, e, c.record.Attempts[p.attempts-1].ClaimedAt)
	}
	if p.attempts < len(c.record.Attempts) {
		c.notAhead(0, e, c.record.Attempts[p.attempts].ClaimedAt)
	}
	c.notAhead(0, e, c.record.FinishedAt)
	t := c.task(0, e, p, ranking)
	if t.Route == nil {
		return nil
	}
	if p.attempts == 0 && t.Route.Draws() {
		t = drawnFor(e, t, ranking)
	}
	c.ranking(e, t, p, &choice{ranking: ranking})
	return nil
}

// drawnFor sets the first choice of the task of a wait before the first attempt. The message may
// have been drawn again since, under another key. The key of the wait is not recorded, so any key
// of the file is accepted.
func drawnFor(e *edition, t *decide.Task, ranking *decide.Ranking) *decide.Task {
	if len(ranking.Candidates) == 0 {
		return t
	}
	return e.Drawn(t, ranking.Candidates[0].Channel)
}

// ranking checks a stored ranking: it lists the members of the route in the order of their stored
// state, the attempt went to the first without an exclusion, and each exclusion is derived or
// possible.
func (c *check) ranking(e *edition, t *decide.Task, p *progress, ch *choice) {
	r := ch.ranking
	if !ch.waits() {
		c.sameNumber(ch.attempt, whatRanking, int64(r.Attempts), int64(p.attempts))
	}
	if r.By == decide.ByWait && ch.waits() {
		c.hold(e, t, p, ch)
		return
	}
	by := t.Route.Ranker(p.attempts)
	c.same(ch.attempt, whatBy, r.By, string(by))
	if r.By != string(by) || !c.fields(t, ch) {
		return
	}
	listed, places, ok := c.places(e, t, ch)
	if !ok {
		return
	}
	c.states(e, t, ch, listed, places)
	c.order(e, t, ch, listed, places)
	c.exclusions(e, t, p, ch, listed, places)
	c.outcome(e, t, p, ch, listed)
}

// fields checks that a ranking has only the fields of its ranker.
func (c *check) fields(t *decide.Task, ch *choice) bool {
	r := ch.ranking
	by := decide.Ranker(r.By)
	extra := func(name string, there bool) bool {
		if there {
			c.differs(ch.attempt, whatRanking, name, "a ranking by "+r.By+", which has none")
		}
		return there
	}
	wrong := by != decide.RoundRobin &&
		(extra("cursor", r.Cursor != "") || extra("after", r.After != nil))
	wrong = wrong || by != decide.Redraw && extra("key_id", r.KeyID != "")
	wrong = wrong ||
		by != decide.BestWorker &&
			(extra("scoring", r.Scoring != "") || extra("trouble", r.Trouble != ""))
	for i := range r.Candidates {
		scored := r.Candidates[i].Score != nil
		wrong = wrong || by != decide.BestWorker && extra("score", scored)
		if by == decide.BestWorker && !scored && r.Candidates[i].Reason != decide.Removed {
			c.differs(ch.attempt, whatScore, r.Candidates[i].Channel+" without", "a score")
			wrong = true
		}
	}
	return !wrong && (by != decide.BestWorker || c.scoring(t, ch))
}

// lost is a first choice that a newer version removed from the route; empty when there is none. The
// ranking begins with it, although it is no longer a member.
func (c *check) lost(t *decide.Task) string {
	if t.Route.Draws() && t.First < 0 {
		return c.record.Message.Plan.FirstChoice
	}
	return ""
}

// places finds the places of the candidates in the route.
func (c *check) places(
	e *edition, t *decide.Task, ch *choice,
) (listed []decide.Ranked, places []int, ok bool) {
	listed = ch.ranking.Candidates
	if lost := c.lost(t); lost != "" {
		if len(listed) == 0 || listed[0].Channel != lost || listed[0].Reason != decide.Removed {
			c.differs(
				ch.attempt, whatCandidates, names(listed),
				"the first choice "+lost+" at the front, "+decide.Removed,
			)
			return nil, nil, false
		}
		listed = listed[1:]
	}
	seen := make(map[int]bool, len(listed))
	places = make([]int, 0, len(listed))
	for i := range listed {
		place := e.Routing.MemberIndex(t.Route, listed[i].Channel)
		if place < 0 || seen[place] {
			c.differs(
				ch.attempt, whatCandidates, listed[i].Channel,
				"a member of route "+t.Route.Name+", once",
			)
			return nil, nil, false
		}
		seen[place] = true
		places = append(places, place)
	}
	if members := len(places) + ch.ranking.More; members != len(t.Route.Members) {
		c.sameNumber(ch.attempt, whatCandidates, int64(members), int64(len(t.Route.Members)))
		return nil, nil, false
	}
	return listed, places, true
}

// considered is how many of the listed candidates were considered: up to the chosen one.
func considered(listed []decide.Ranked) int {
	if at := slices.IndexFunc(listed, func(r decide.Ranked) bool { return r.Reason == "" }); at >= 0 {
		return at + 1
	}
	return len(listed)
}

// states checks that the stored state of the candidates is possible, and that no candidate that
// must be listed is missing.
func (c *check) states(
	e *edition, t *decide.Task, ch *choice, listed []decide.Ranked, places []int,
) {
	all := len(places) + ch.ranking.More
	least := max(min(all, decide.MaxRanked), considered(listed))
	if ch.ranking.Stateless() && !ch.waits() {
		least = considered(listed) // the order does not depend on those that are not listed
	}
	if len(listed) < least {
		c.differs(
			ch.attempt, whatCandidates, fmt.Sprintf("%d of %d", len(listed), all),
			fmt.Sprintf("at least %d", least),
		)
	}
	holdsLoad := ch.ranking.HoldsLoad()
	for i := range listed {
		one := &listed[i]
		if holdsLoad || one.Capacity != 0 {
			c.sameNumber(
				ch.attempt, whatCandidates, one.Capacity,
				e.Routing.Channels[t.Route.Members[places[i]]].Capacity,
			)
		}
		if one.Active < 0 {
			c.differs(
				ch.attempt, whatCandidates,
				fmt.Sprintf("%s with %d under way", one.Channel, one.Active), "none below 0",
			)
		}
		if !ch.waits() && one.LastAssigned.Time().After(ch.at.Add(clockTolerance)) {
			c.differs(
				ch.attempt, whatCandidates,
				one.Channel+" with an attempt at "+one.LastAssigned.Time().Format(time.RFC3339Nano),
				"one before",
			)
		}
	}
}

// order ranks the stored candidates again. If the order does not depend on their state, it ranks
// all members, and the stored ones must be the first of them.
func (c *check) order(
	e *edition, t *decide.Task, ch *choice, listed []decide.Ranked, places []int,
) {
	r := ch.ranking
	if t.First >= 0 && t.Route.Draws() && (len(places) == 0 || places[0] != t.First) {
		c.differs(
			ch.attempt, whatOrder, names(listed),
			"the first choice "+t.Route.Table.Entry(t.First).Name+" at the front",
		)
		return
	}
	candidates := make([]selector.Candidate, len(places), len(t.Route.Members))
	for i, place := range places {
		candidates[i] = listed[i].Candidate(place)
	}
	if r.Stateless() {
		for place := range t.Route.Members {
			if !slices.Contains(places, place) {
				candidates = append(candidates, selector.Candidate{Index: place})
			}
		}
	} else if decide.Ranker(r.By) == decide.BestWorker {
		c.scores(e, t, ch, candidates)
	}
	others := candidates
	if t.First >= 0 && t.Route.Draws() {
		others = others[1:]
	}
	if !c.basis(e, t, ch) {
		return
	}
	e.Rank(t, r, others)
	derived := candidates[:len(places)]
	if !slices.EqualFunc(
		derived, places, func(d selector.Candidate, place int) bool { return d.Index == place },
	) {
		c.differs(ch.attempt, whatOrder, names(listed), e.names(t, derived))
	}
}

// basis checks what the order depends on besides the candidates: cursor, draw key. It is false when
// the order cannot be derived.
func (c *check) basis(e *edition, t *decide.Task, ch *choice) bool {
	r := ch.ranking
	switch decide.Ranker(r.By) {
	case decide.RoundRobin:
		if r.After == nil || *r.After < -1 {
			c.differs(ch.attempt, whatCursor, r.Cursor, "where the round robin stood")
			return false
		}
		if place := e.Routing.MemberIndex(t.Route, r.Cursor); place >= 0 {
			c.sameNumber(ch.attempt, whatCursor, int64(*r.After), int64(place))
		}
	case decide.Redraw:
		own := c.record.Message.Plan.KeyID
		switch {
		case len(c.v.keys) == 0:
			c.withoutKey()
			return false
		case !e.HasKey(r.KeyID):
			c.differs(ch.attempt, whatDrawKey, r.KeyID, "not in the key file")
			return false
		case !ch.waits() && own != "" && e.HasKey(own):
			// a message keeps the key of its first draw
			c.same(ch.attempt, whatDrawKey, r.KeyID, own)
		}
	case decide.LoadRatio, decide.BestWorker, decide.InOrder:
	}
	return true
}

// outcome checks the result of the ranking: the first candidate without an exclusion, or a wait if
// all have one. A first choice without an exclusion at the first attempt must have no ranking. If
// the route holds messages for their first choice, others are chosen only after the hold, or if a
// limit can never admit the message.
func (c *check) outcome(
	e *edition, t *decide.Task, p *progress, ch *choice, listed []decide.Ranked,
) {
	chosen := ""
	if at := ch.ranking.Chosen(); at >= 0 {
		chosen = ch.ranking.Candidates[at].Channel
	}
	c.same(ch.attempt, whatChannel, ch.channel, chosen)
	if ch.waits() || len(listed) == 0 || !t.Route.Draws() || t.First < 0 {
		return
	}
	first := &listed[0]
	if first.Reason == "" && p.attempts == 0 {
		c.differs(ch.attempt, whatRanking, "one", "none: the first choice could take it")
	}
	end := t.Route.HoldEnds(first.Reason, c.sendable(), c.record.Message.ExpiresAt)
	member := t.Route.Members[t.First]
	closed := e.Closed(t, member, c.cutsOtherwise(t, &e.Routing.Channels[member]))
	if decide.IsLimit(first.Reason) && end.After(ch.at) && !closed {
		c.differs(
			ch.attempt, whatExclusion, first.Channel+" "+first.Reason,
			"held for it until "+end.Format(time.RFC3339Nano),
		)
	}
}

// sendable is the earliest time at which the message could be sent.
func (c *check) sendable() time.Time {
	if received := c.record.Message.ReceivedAt; received.After(c.msg.SendAt) {
		return received
	}
	return c.msg.SendAt
}

// hold checks the record of a message that was held for its first choice, so that no other channel
// was considered.
func (c *check) hold(e *edition, t *decide.Task, p *progress, ch *choice) {
	r := ch.ranking
	switch {
	case !t.Route.Draws() || t.Route.Wait == 0 && !heldFor(r, decide.InFlight):
		c.differs(ch.attempt, whatBy, r.By, string(t.Route.Ranker(p.attempts)))
		return
	case t.First < 0 || len(r.Candidates) != 1 ||
		r.Candidates[0].Channel != t.Route.Table.Entry(t.First).Name:
		c.differs(
			ch.attempt, whatCandidates, names(r.Candidates),
			"the first choice "+c.firstName(t)+" alone",
		)
		return
	case !decide.IsLimit(r.Candidates[0].Reason):
		c.differs(
			ch.attempt, whatExclusion, r.Candidates[0].Channel+" "+r.Candidates[0].Reason,
			"one that passes by itself",
		)
		return
	}
	c.sameNumber(ch.attempt, whatCandidates, int64(1+r.More), int64(len(t.Route.Members)))
	places := []int{t.First}
	c.exclusions(e, t, p, ch, r.Candidates, places)
}

// heldFor reports whether the first candidate has this exclusion reason.
func heldFor(r *decide.Ranking, reason string) bool {
	return len(r.Candidates) > 0 && r.Candidates[0].Reason == reason
}

func (c *check) firstName(t *decide.Task) string {
	if t.First < 0 {
		return c.record.Message.Plan.FirstChoice
	}
	return t.Route.Table.Entry(t.First).Name
}

func names(candidates []decide.Ranked) string {
	out := make([]string, len(candidates))
	for i := range candidates {
		out[i] = candidates[i].Channel
	}
	return strings.Join(out, " ")
}

func (e *edition) names(t *decide.Task, candidates []selector.Candidate) string {
	out := make([]string, len(candidates))
	for i := range candidates {
		out[i] = e.Routing.Channels[t.Route.Members[candidates[i].Index]].Name
	}
	return strings.Join(out, " ")
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
