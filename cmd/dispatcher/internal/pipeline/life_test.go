package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
)

// act runs one step of a script. A step that is not possible now does nothing.
//
//	answer X [Y]     an attempt leaves, and its process stores the answers of its parts
//	submit X [Y]     an attempt leaves, and its process is stopped before it stores the answer
//	settle N         the process of attempt N stores what it holds
//	wake             all processes store what they hold; attempts that did not leave in time never do
//	recover          another process declares all attempts without a stored answer lost
//	receipt N P BY S a receipt for part P of attempt N, by reference, key or both, with state S
//	due              time passes until something is due, and it is processed
//	claim, search, sweep  a process handles due messages, ambiguous ones, or receipts
//	minute, deadline, days  that much time passes, and what is due is processed
//	carrier, ignore  an operator settles it by the carrier's log, or as final
//	silent, respond  carriers stop answering look-ups, or answer them again
func (m *messageLife) act(word string) {
	f := strings.Fields(word)
	done := true
	switch f[0] {
	case "answer":
		left := m.submit(f[1:]...)
		if done = left != nil; done {
			m.settle(left)
		}
	case "submit":
		done = m.submit(f[1:]...) != nil
	case "settle":
		number, _ := strconv.Atoi(f[1])
		at := slices.IndexFunc(m.held, func(h *heldAttempt) bool {
			return h.flight.Submission.Attempt == number
		})
		if done = at >= 0; done {
			m.settle(m.held[at])
		}
	case "wake":
		done = m.wake()
	case "recover":
		done = m.recover()
	case "receipt":
		number, _ := strconv.Atoi(f[1])
		part, _ := strconv.Atoi(f[2])
		states := map[string]provider.ReceiptState{
			"pending":   provider.Pending,
			"delivered": provider.Delivered, "undelivered": provider.Undelivered,
		}
		done = m.receipt(number, part, f[3], states[f[4]])
	case "due":
		done = m.due()
	case "claim":
		m.claim(nil, 10)
	case "search":
		m.search()
	case "sweep":
		m.sweep()
	case "minute":
		m.pass(time.Minute)
		m.runDue()
	case "deadline":
		m.pass(time.Hour)
		m.runDue()
	case "days":
		m.pass(96 * time.Hour)
		m.runDue()
	case "carrier", "ignore":
		done = m.operator(f[0] == "ignore")
	case "silent", "respond":
		m.silent = f[0] == "silent"
	default:
		m.t.Fatalf("unknown step %s", word)
	}
	if done {
		m.log = append(m.log, word)
	}
}

// script is a life in words: the lane, the first channel, the segments, the carriers' final answer,
// and the steps.
type script struct {
	lane, first string
	segments    int
	again       string
	steps       []string
}

func (s script) String() string {
	return fmt.Sprintf("%s %s %d %s: %s", s.lane, s.first, s.segments, s.again,
		strings.Join(s.steps, "; "))
}

// play runs a script to the message's end and compares it with the oracle.
func (r *lifeRig) play(t failing, tt *testing.T, s script) {
	m := r.begin(tt.Context(), t, s.lane, s.first, s.segments)
	m.log = append([]string{s.lane + " " + s.first + " " + strconv.Itoa(s.segments) + " " +
		s.again + ":"}, m.log...)
	m.again = s.again
	defer r.clear(tt, m)
	for _, word := range s.steps {
		m.act(word)
	}
	m.log = append(m.log, "end")
	m.end()
	m.check()
}

// clear removes a message that did not end as expected, so that it does not disturb later ones.
func (r *lifeRig) clear(t *testing.T, m *messageLife) {
	for _, sql := range []string{
		`update dispatcher.receipts set due_at = null, look_at = null where message_seq = $1`,
		`delete from dispatcher.ambiguous where message_seq = $1`,
		`update dispatcher.messages set next_at = null, finished_at = coalesce(finished_at, ` +
			`now()), state = 'failed' where seq = $1 and next_at is not null`,
		`update dispatcher.channels c set active = 0, freed = (
			select slots from dispatcher.freed_slots f where f.channel = c.channel)
			where $1::bigint > 0`,
		`update dispatcher.attempts set freed = true where message_seq = $1`,
	} {
		if _, err := r.sql.Exec(t.Context(), sql, m.seq); err != nil {
			t.Fatal(err)
		}
	}
	m.events()
	tier.Eventually(t, "a heartbeat is stored", func() bool { return r.d.Beat(t.Context()) == nil })
}

// scripts draws scripts.
func scripts() *rapid.Generator[script] {
	answers := []string{"yes", "yes", "no", "busy", "slow", "lost", "lost", "void"}
	word := rapid.Custom(func(t *rapid.T) string {
		switch kind := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case kind < 4:
			return "answer " + rapid.SampledFrom(answers).Draw(t, "first") + " " +
				rapid.SampledFrom(answers).Draw(t, "second")
		case kind < 7:
			return "submit " + rapid.SampledFrom(answers).Draw(t, "first") + " " +
				rapid.SampledFrom(answers).Draw(t, "second")
		case kind < 12:
			return fmt.Sprintf("receipt %d %d %s %s", rapid.IntRange(1, 3).Draw(t, "attempt"),
				rapid.IntRange(0, 1).Draw(t, "part"),
				rapid.SampledFrom([]string{"reference", "key", "both"}).Draw(t, "by"),
				rapid.SampledFrom([]string{
					"pending", "delivered", "delivered",
					"undelivered",
				}).Draw(t, "state"))
		case kind < 14:
			return "due"
		case kind < 15:
			return fmt.Sprintf("settle %d", rapid.IntRange(1, 3).Draw(t, "settled"))
		}
		return rapid.SampledFrom([]string{
			"wake", "wake", "recover", "recover", "minute",
			"deadline", "days", "claim", "search", "search", "sweep", "carrier", "ignore", "silent",
			"respond",
		}).Draw(t, "other")
	})
	return rapid.Custom(func(t *rapid.T) script {
		return script{
			lane: rapid.SampledFrom([]string{"never", "once", "bare", "hasty", "keyed"}).Draw(
				t, "lane"),
			first:    rapid.SampledFrom([]string{"b", "a", "c", "d", "e"}).Draw(t, "channel"),
			segments: rapid.IntRange(1, 2).Draw(t, "segments"),
			again: rapid.SampledFrom([]string{"yes", "busy", "lost", "void", "no"}).Draw(t,
				"again"),
			steps: rapid.SliceOfN(word, 1, 14).Draw(t, "words"),
		}
	})
}

// lifeSeeds is the number of lives with fixed seeds.
func lifeSeeds() int { return tier.Size(12, 80) }

// TestAMessageEndsAsTheOracleSays runs lives with fixed seeds. In the long tier fresh ones follow,
// as many as -rapid.checks says; a failing one is made as short as possible.
func TestAMessageEndsAsTheOracleSays(t *testing.T) {
	t.Parallel()
	rig := newLifeRig(t)
	gen := scripts()
	for seed := range lifeSeeds() {
		s := gen.Example(seed + 1)
		if !t.Run(strconv.Itoa(seed+1), func(t *testing.T) { rig.play(t, t, s) }) {
			t.Log(s)
		}
	}
	if tier.Long() {
		tier.Check(t, func(rt *rapid.T) { rig.play(rt, t, gen.Draw(rt, "life")) })
	}
}
