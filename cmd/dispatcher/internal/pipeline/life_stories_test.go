package pipeline

import (
	"strings"
	"testing"

	"dispatcher/config/tier"
)

// lifeStories are lives that once ended wrongly, with the error in a comment.
var lifeStories = []struct {
	name  string
	life  script
	steps string
}{
	{
		// it expected a receipt and was no_receipt for ever
		"a process wakes after its lease and says that the attempt never left; the next one is " +
			"delivered",
		script{lane: "never", first: "b", segments: 1, again: "yes"},
		"recover; wake; claim; answer yes; receipt 2 0 reference delivered",
	},
	{
		// it was failed, with a resend that was never made
		"nobody answers after the deadline, on a lane that resends; the receipt says delivered",
		script{lane: "once", first: "b", segments: 1, again: "yes"},
		"submit lost; deadline; wake; receipt 1 0 both delivered",
	},
	{
		"the receipt is there before nobody's answer, after the deadline",
		script{lane: "once", first: "b", segments: 1, again: "yes"},
		"submit lost; receipt 1 0 both delivered; deadline; wake",
	},
	{
		// it was failed, as if nobody could have taken it
		"nobody answers after the deadline, and nobody can tell",
		script{lane: "hasty", first: "a", segments: 1, again: "yes"},
		"submit lost; deadline; wake",
	},
	{
		// it was failed
		"it is to be sent once more, no channel has it before its deadline, and the first one " +
			"delivers it",
		script{lane: "once", first: "b", segments: 1, again: "busy"},
		"answer lost; due; deadline; deadline; receipt 1 0 both delivered",
	},
	{
		"it is sent once more and rejected, and the first channel delivers it", // it was rejected
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"answer lost; claim; answer no; receipt 1 0 both delivered",
	},
	{
		// it was unknown, although its provider had taken it
		"it is sent once more, nobody answers that either, and a late answer tells of the first",
		script{lane: "once", first: "b", segments: 1, again: "void"},
		"submit yes; recover; due; due; claim; answer void; wake",
	},
	{
		// it was sent a third time
		"a late answer tells of the first attempt while the second one waits for a third",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; answer busy; wake; receipt 1 0 both delivered",
	},
	{
		"a late answer tells of the first attempt after a part of the second was taken",
		script{lane: "hasty", first: "b", segments: 2, again: "yes"},
		"submit yes yes; recover; claim; answer yes busy; wake",
	},
	{
		// it was sent again by another channel, unflagged
		"an attempt never left, its repeat under the key is taken without an answer",
		script{lane: "never", first: "c", segments: 1, again: "yes"},
		"recover; silent; due; answer lost; wake; search; search",
	},
	{
		"the same, and the search ends without a result",
		script{lane: "never", first: "c", segments: 1, again: "lost"},
		"recover; silent; due; answer lost; wake; search",
	},
	{
		// it was unknown
		"a late answer tells of the first attempt while the second one is under way, which " +
			"nobody answers",
		script{lane: "keyed", first: "b", segments: 1, again: "void"},
		"submit yes; recover; due; submit void; settle 1; settle 2; due",
	},
	{
		// it was sent a third time
		"a late answer tells of the first attempt while the second one is under way, which is " +
			"refused",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit busy; settle 1; settle 2; due",
	},
	{
		// it was unknown
		"a late answer tells of the first attempt while the second one is under way, which is " +
			"rejected",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit no; settle 1; settle 2",
	},
	{
		// it was sent a third time
		"a receipt proves the first attempt while the second one is under way, which is refused",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit lost; recover; claim; submit busy; receipt 1 0 key pending; wake; due",
	},
	{
		"a receipt says that the first attempt was not delivered while the second one is under " +
			"way, which is refused",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit busy; settle 1; receipt 1 0 both undelivered; " +
			"wake; due",
	},
	{
		// it was unknown
		"it was sent once more and rejected, and an operator says that nobody took the first",
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"submit void; recover; claim; answer no; carrier",
	},
	{
		"it was sent once more and rejected, and the first one never left", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"recover; claim; answer no; wake",
	},
	{
		// it was unknown
		"it was sent once more and refused until its deadline, and an operator says that nobody " +
			"took the first",
		script{lane: "hasty", first: "b", segments: 1, again: "busy"},
		"submit void; recover; claim; answer busy; deadline; carrier",
	},
	{
		// it was unknown
		"it is sent once more, the first one never left, and the second one is rejected",
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"recover; claim; wake; answer no",
	},
	{
		"it is repeated under its key, sent once more and rejected, and an operator says that " +
			"nobody took the first",
		script{lane: "keyed", first: "c", segments: 1, again: "no"},
		"answer void; due; answer void; deadline; claim; search; claim; answer no; carrier",
	},
	{
		// it counted as a contradiction
		"the first attempt never left, its repeat under the key is delivered, and the receipt " +
			"has the key only",
		script{lane: "keyed", first: "c", segments: 1, again: "yes"},
		"recover; due; submit yes; settle 1; receipt 1 0 key delivered; settle 2",
	},
	{
		"the same, and the receipt comes after the answer",
		script{lane: "keyed", first: "c", segments: 1, again: "yes"},
		"recover; due; submit yes; settle 1; settle 2; receipt 1 0 key delivered",
	},
	{
		"the same, and nobody answers the repeat",
		script{lane: "never", first: "c", segments: 1, again: "yes"},
		"recover; due; submit lost; silent; wake; receipt 1 0 key delivered",
	},
	{
		// the event was flagged, and it was sent once
		"it is to be sent once more, and a receipt says that the first one was delivered",
		script{lane: "hasty", first: "c", segments: 1, again: "yes"},
		"answer lost; receipt 1 0 key delivered",
	},
	{
		// the flag was removed
		"a part is taken twice, the rest waits, and a receipt proves the first attempt",
		script{lane: "hasty", first: "b", segments: 2, again: "busy"},
		"submit lost lost; recover; claim; answer yes busy; receipt 1 0 both delivered",
	},
	{
		// the event was sent twice
		"an operator says that nobody will know, after the search has ended with that",
		script{lane: "never", first: "a", segments: 1, again: "yes"},
		"answer lost; ignore",
	},
	{
		// it was sent a third time
		"a receipt proves the first attempt, which was not delivered, while the second one is " +
			"under way, which is refused",
		script{lane: "once", first: "b", segments: 2, again: "yes"},
		"submit no lost; wake; due; submit busy lost; receipt 1 1 both undelivered",
	},
	{
		// it was unknown
		"its deadline passes before it is sent once more, and an operator says that nobody took " +
			"the first",
		script{lane: "hasty", first: "a", segments: 2, again: "yes"},
		"answer void no; deadline; carrier",
	},
	{
		// the audit called it a forgery
		"a late answer tells of the first attempt, which gives no receipts, after the second had " +
			"no answer",
		script{lane: "hasty", first: "d", segments: 1, again: "yes"},
		"submit yes; recover; claim; answer void; wake",
	},
	{
		// the audit called it a forgery
		"it is sent once more and refused until its deadline, and nobody knows of the first",
		script{lane: "hasty", first: "d", segments: 1, again: "busy"},
		"answer lost; claim; answer busy",
	},
	{
		// the audit missed a segment
		"of two parts one is refused and the other has no answer, and an operator says that it " +
			"was taken",
		script{lane: "once", first: "a", segments: 2, again: "no"},
		"answer lost busy; carrier",
	},
	{
		// the audit called the repeats forgeries
		"it is sent once more, and that is repeated under its key",
		script{lane: "keyed", first: "b", segments: 2, again: "lost"},
		"answer busy void",
	},
	{
		// the audit missed its segments, which the repeat carries
		"a receipt proves the first attempt after it was repeated under its key",
		script{lane: "never", first: "c", segments: 2, again: "lost"},
		"submit lost yes; receipt 1 0 key pending",
	},
	{
		"the rest of what nobody knew does not count once it is denied as a whole",
		script{lane: "never", first: "b", segments: 2, again: "yes"},
		"recover; wake; claim; answer yes yes; receipt 2 0 both delivered; receipt 2 1 both " +
			"delivered",
	},
	{
		// the flag was lost
		"a part of the first attempt is delivered, and a part of its repeat is proved, while it " +
			"waits",
		script{lane: "keyed", first: "a", segments: 2, again: "lost"},
		"sweep; answer lost lost; minute; receipt 1 1 reference delivered; submit lost void; " +
			"wake; receipt 2 0 both pending; sweep; respond",
	},
	{
		// it was sent once more
		"a receipt with our key comes before its attempt is taken for lost",
		script{lane: "hasty", first: "b", segments: 1, again: "void"},
		"submit lost; receipt 1 0 both pending; recover; claim",
	},
	{
		"a receipt with our key comes before nobody's answer", // it was sent once more
		script{lane: "hasty", first: "b", segments: 1, again: "void"},
		"submit lost; receipt 1 0 key delivered; wake; claim",
	},
	{
		// the oracle was wrong
		"a receipt proves an attempt that was taken for lost, before its owner says less",
		script{lane: "keyed", first: "b", segments: 2, again: "yes"},
		"submit lost yes; receipt 1 1 key delivered; due; recover; minute",
	},
	{
		// the event said possible duplicate
		"it is to be sent once more, and an operator says that it was taken",
		script{lane: "once", first: "d", segments: 1, again: "busy"},
		"answer lost yes; carrier",
	},
	{
		// the flag was lost
		"it was sent once more, and an operator says that this was taken while it is to be " +
			"repeated",
		script{lane: "keyed", first: "a", segments: 1, again: "busy"},
		"answer lost; due; claim; answer lost; carrier",
	},
	{
		// it was no_receipt, and stayed so when the next channel accepted it
		"it goes on without a receipt, and the time of the first one ends before the answer",
		script{lane: "bare", first: "e", segments: 1, again: "yes"},
		"answer yes; due; submit yes; due; due; wake; receipt 2 0 both delivered",
	},
	{
		// it was no_receipt, and not sent to the channel after that
		"the same, and the next channel refuses",
		script{lane: "bare", first: "e", segments: 1, again: "yes"},
		"answer yes; due; submit busy; due; due; wake; claim; submit yes; sweep; wake; " +
			"receipt 3 0 reference delivered",
	},
	{
		"the same, and nobody answers",
		script{lane: "bare", first: "e", segments: 2, again: "lost"},
		"answer yes; due; submit lost lost; due; recover",
	},
	{
		// the state unknown was published again
		"the resend is taken for lost, and its process says that it never left",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"answer void void; search; due; days",
	},
}

func TestStoriesEndAsTheOracleSays(t *testing.T) {
	t.Parallel()
	rig := newLifeRig(t)
	for _, story := range tier.Sample(lifeStories, 2) {
		t.Run(story.name, func(t *testing.T) {
			s := story.life
			s.steps = strings.Split(story.steps, "; ")
			rig.play(t, t, s)
		})
	}
}
