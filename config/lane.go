package config

import (
	"math"
	"slices"
	"time"
)

// Lane is a class of messages with its topics.
type Lane struct {
	Name       string
	Topics     []string
	TTL        time.Duration // how long a message without expires_at is worth sending
	MaxWaiting int64         // when this many wait, the topics are paused
	Ambiguous  string        // if the outcome stays unknown: "never" or "resend_once"
	// Clarify are the steps to find out the outcome first: "same_key", "lookup", "receipt", in the
	// order in which they are tried.
	Clarify    []string
	ClarifyFor time.Duration // how long they are tried
	// IgnoreOptOut also sends to recipients who have opted out of the tenant's messages.
	IgnoreOptOut bool
}

// standardLanes are the values of StandardLanes, and the defaults of a lane of the same name. An
// OTP that arrives twice does no harm, but one that never arrives locks a person out. So only otp
// sends once more after an unknown outcome, and does so soon.
var standardLanes = []Lane{
	{Name: "otp", TTL: 10 * time.Minute, Ambiguous: "resend_once", ClarifyFor: 30 * time.Second},
	{Name: "transactional", TTL: time.Hour, Ambiguous: "never", ClarifyFor: 10 * time.Minute},
	{Name: "bulk", TTL: 24 * time.Hour, Ambiguous: "never", ClarifyFor: time.Hour},
}

// StandardLanes returns the lanes of a routing document that names none.
func StandardLanes() []Lane {
	out := make([]Lane, len(standardLanes))
	for i, l := range standardLanes {
		out[i] = newLane(l.Name)
	}
	return out
}

// newLane returns a lane with its defaults.
func newLane(name string) Lane {
	l := Lane{Name: name, TTL: time.Hour, Ambiguous: "never", ClarifyFor: 10 * time.Minute}
	for _, lane := range standardLanes {
		if lane.Name == name {
			l = lane
		}
	}
	l.Topics, l.MaxWaiting, l.Clarify = []string{"sms." + name}, defaultMaxWaiting, clarifies
	return l
}

func readLanes(top fields) []Lane {
	var out []Lane
	v, ok := top.get("lanes")
	if ok {
		entries, _ := v.entries()
		for _, e := range entries {
			e.value.checkName("lane", e.name)
			out = append(out, readLane(e))
		}
		checkTopics(v, out)
	}
	if len(out) == 0 {
		return StandardLanes()
	}
	return out
}

func readLane(e entry) Lane {
	l := newLane(e.name)
	if e.value.node.Tag == "!!null" {
		return l
	}
	f, ok := e.value.fields(lanePart)
	if !ok {
		return l
	}
	if v, ok := f.get("topics"); ok {
		l.Topics = readTopics(v)
	}
	if v, ok := f.get("ttl"); ok {
		l.TTL, _ = v.duration(time.Second, 30*day)
	}
	if v, ok := f.get("max_waiting"); ok {
		l.MaxWaiting = v.integer(1, math.MaxInt32)
	}
	if v, ok := f.get("ambiguous"); ok {
		l.Ambiguous, _ = v.word("ambiguous", ambiguous)
	}
	if v, ok := f.get("clarify"); ok {
		l.Clarify = readClarify(v)
	}
	if v, ok := f.get("clarify_for"); ok {
		l.ClarifyFor, _ = v.duration(time.Second, 7*day)
	}
	if v, ok := f.get("ignore_opt_out"); ok {
		l.IgnoreOptOut = v.flag()
	}
	return l
}

// readClarify reads the steps to resolve an ambiguous attempt, in the order of trying; an empty
// list means none.
func readClarify(v value) []string {
	out := []string{}
	for _, item := range v.items() {
		word, ok := item.word("way to clarify", clarifies)
		switch {
		case !ok:
		case slices.Contains(out, word):
			item.fail("%s stands in the list already; remove it", word)
		default:
			out = append(out, word)
		}
	}
	return out
}

func readTopics(v value) []string {
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; remove the key for the default topic")
	}
	var out []string
	for _, item := range items {
		s, ok := item.text()
		if !ok {
			continue
		}
		if why := topicProblem(s); why != "" {
			item.fail("%q %s; choose another name", s, why)
		}
		out = append(out, s)
	}
	return out
}

// checkTopics reports a topic of two lanes: its messages would belong to both.
func checkTopics(v value, lanes []Lane) {
	owner := map[string]string{}
	for _, l := range lanes {
		for _, topic := range l.Topics {
			if other, taken := owner[topic]; taken {
				v.fail("topic %s belongs to lane %s and to lane %s; keep it in one", topic, other,
					l.Name)
			}
			owner[topic] = l.Name
		}
	}
}
