package pipeline

import (
	"strings"
	"testing"
)

// lifeStories are lives that once ended otherwise than they should, and what was wrong.
var lifeStories = []struct {
	name  string
	life  script
	words string
}{
	{
		"a process wakes after its lease and says that the attempt never left; the next one is delivered", // it owed a receipt and was no_receipt for ever
		script{lane: "never", first: "b", segments: 1, again: "yes"},
		"recover; wake; claim; answer yes; receipt 2 0 reference delivered",
	},
	{
		"nobody answers after the deadline, on a lane that resends; the receipt says delivered", // it was failed, with a resend that was never made
		script{lane: "once", first: "b", segments: 1, again: "yes"},
		"submit lost; deadline; wake; receipt 1 0 both delivered",
	},
	{
		"the receipt is there before nobody's answer, after the deadline",
		script{lane: "once", first: "b", segments: 1, again: "yes"},
		"submit lost; receipt 1 0 both delivered; deadline; wake",
	},
	{
		"nobody answers after the deadline, and nobody can tell", // it was failed, as if nobody could have taken it
		script{lane: "hasty", first: "a", segments: 1, again: "yes"},
		"submit lost; deadline; wake",
	},
	{
		"it is to be sent once more, no channel has it before its deadline, and the first one delivers it", // it was failed
		script{lane: "once", first: "b", segments: 1, again: "busy"},
		"answer lost; due; deadline; deadline; receipt 1 0 both delivered",
	},
	{
		"it is sent once more and rejected, and the first channel delivers it", // it was rejected
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"answer lost; claim; answer no; receipt 1 0 both delivered",
	},
	{
		"it is sent once more, nobody answers that either, and a late answer tells of the first", // it was unknown, although its provider had taken it
		script{lane: "once", first: "b", segments: 1, again: "void"},
		"submit yes; recover; due; due; claim; answer void; wake",
	},
	{
		"a late answer tells of the first attempt while the second one waits for a third", // it was sent a third time
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; answer busy; wake; receipt 1 0 both delivered",
	},
	{
		"a late answer tells of the first attempt after a part of the second was taken",
		script{lane: "hasty", first: "b", segments: 2, again: "yes"},
		"submit yes yes; recover; claim; answer yes busy; wake",
	},
	{
		"an attempt never left, its repeat under the key is taken without an answer", // it was sent again by another channel, unflagged
		script{lane: "never", first: "c", segments: 1, again: "yes"},
		"recover; mute; due; answer lost; wake; search; search",
	},
	{
		"the same, and the search ends without a result",
		script{lane: "never", first: "c", segments: 1, again: "lost"},
		"recover; mute; due; answer lost; wake; search",
	},
	{
		"a late answer tells of the first attempt while the second one is under way, which nobody answers", // it was unknown
		script{lane: "keyed", first: "b", segments: 1, again: "void"},
		"submit yes; recover; due; submit void; settle 1; settle 2; due",
	},
	{
		"a late answer tells of the first attempt while the second one is under way, which is refused", // it was sent a third time
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit busy; settle 1; settle 2; due",
	},
	{
		"a late answer tells of the first attempt while the second one is under way, which is rejected", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit no; settle 1; settle 2",
	},
	{
		"a receipt proves the first attempt while the second one is under way, which is refused", // it was sent a third time
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit lost; recover; claim; submit busy; receipt 1 0 key pending; wake; due",
	},
	{
		"a receipt says that the first attempt was not delivered while the second one is under way, which is refused",
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"submit yes; recover; claim; submit busy; settle 1; receipt 1 0 both undelivered; wake; due",
	},
	{
		"it was sent once more and rejected, and an operator says that nobody took the first", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"submit void; recover; claim; answer no; carrier",
	},
	{
		"it was sent once more and rejected, and the first one never left", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"recover; claim; answer no; wake",
	},
	{
		"it was sent once more and refused until its deadline, and an operator says that nobody took the first", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "busy"},
		"submit void; recover; claim; answer busy; deadline; carrier",
	},
	{
		"it is sent once more, the first one never left, and the second one is rejected", // it was unknown
		script{lane: "hasty", first: "b", segments: 1, again: "no"},
		"recover; claim; wake; answer no",
	},
	{
		"it is repeated under its key, sent once more and rejected, and an operator says that nobody took the first",
		script{lane: "keyed", first: "c", segments: 1, again: "no"},
		"answer void; due; answer void; deadline; claim; search; claim; answer no; carrier",
	},
	{
		"the first attempt never left, its repeat under the key is delivered, and the receipt has the key only", // it counted as a contradiction
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
		"recover; due; submit lost; mute; wake; receipt 1 0 key delivered",
	},
	{
		"it is to be sent once more, and a receipt says that the first one was delivered", // the event was flagged, and it was sent once
		script{lane: "hasty", first: "c", segments: 1, again: "yes"},
		"answer lost; receipt 1 0 key delivered",
	},
	{
		"a part is taken twice, the rest waits, and a receipt proves the first attempt", // the flag was taken away
		script{lane: "hasty", first: "b", segments: 2, again: "busy"},
		"submit lost lost; recover; claim; answer yes busy; receipt 1 0 both delivered",
	},
	{
		"an operator says that nobody will know, after the search has ended with that", // it was told twice
		script{lane: "never", first: "a", segments: 1, again: "yes"},
		"answer lost; ignore",
	},
	{
		"a receipt proves the first attempt, which was not delivered, while the second one is under way, which is refused", // it was sent a third time
		script{lane: "once", first: "b", segments: 2, again: "yes"},
		"submit no lost; wake; due; submit busy lost; receipt 1 1 both undelivered",
	},
	{
		"its deadline passes before it is sent once more, and an operator says that nobody took the first", // it was unknown
		script{lane: "hasty", first: "a", segments: 2, again: "yes"},
		"answer void no; deadline; carrier",
	},
	{
		"a late answer tells of the first attempt, which gives no receipts, after the second had no answer", // the audit called it a forgery
		script{lane: "hasty", first: "d", segments: 1, again: "yes"},
		"submit yes; recover; claim; answer void; wake",
	},
	{
		"it is sent once more and refused until its deadline, and nobody knows of the first", // the audit called it a forgery
		script{lane: "hasty", first: "d", segments: 1, again: "busy"},
		"answer lost; claim; answer busy",
	},
	{
		"of two parts one is refused and the other has no answer, and an operator says that it was taken", // the audit missed a segment
		script{lane: "once", first: "a", segments: 2, again: "no"},
		"answer lost busy; carrier",
	},
	{
		"it is sent once more, and that is repeated under its key", // the audit called the repeats forgeries
		script{lane: "keyed", first: "b", segments: 2, again: "lost"},
		"answer busy void",
	},
	{
		"a receipt proves the first attempt after it was repeated under its key", // the audit missed its segments, which the repeat carries
		script{lane: "never", first: "c", segments: 2, again: "lost"},
		"submit lost yes; receipt 1 0 key pending",
	},
	{
		"the rest of what nobody knew does not count once it is denied as a whole",
		script{lane: "never", first: "b", segments: 2, again: "yes"},
		"recover; wake; claim; answer yes yes; receipt 2 0 both delivered; receipt 2 1 both delivered",
	},
	{
		"a part of the first attempt is delivered, and a part of its repeat is proved, while it waits", // the flag was lost
		script{lane: "keyed", first: "a", segments: 2, again: "lost"},
		"sweep; answer lost lost; minute; receipt 1 1 reference delivered; submit lost void; wake; receipt 2 0 both pending; sweep; speak",
	},
	{
		"a receipt with our key comes before its attempt is taken for lost", // it was sent once more
		script{lane: "hasty", first: "b", segments: 1, again: "void"},
		"submit lost; receipt 1 0 both pending; recover; claim",
	},
	{
		"a receipt with our key comes before nobody's answer", // it was sent once more
		script{lane: "hasty", first: "b", segments: 1, again: "void"},
		"submit lost; receipt 1 0 key delivered; wake; claim",
	},
	{
		"a receipt proves an attempt that was taken for lost, before its owner says less", // the oracle missed it
		script{lane: "keyed", first: "b", segments: 2, again: "yes"},
		"submit lost yes; receipt 1 1 key delivered; due; recover; minute",
	},
	{
		"it is to be sent once more, and an operator says that it was taken", // the event said possible duplicate
		script{lane: "once", first: "d", segments: 1, again: "busy"},
		"answer lost yes; carrier",
	},
	{
		"it was sent once more, and an operator says that this was taken while it is to be repeated", // the flag was lost
		script{lane: "keyed", first: "a", segments: 1, again: "busy"},
		"answer lost; due; claim; answer lost; carrier",
	},
	{
		"the resend is taken for lost, and its process says that it never left", // unknown was told once more
		script{lane: "hasty", first: "b", segments: 1, again: "yes"},
		"answer void void; search; due; days",
	},
}

func TestStoriesEndAsTheOracleSays(t *testing.T) {
	t.Parallel()
	rig := newLifeRig(t)
	for _, story := range lifeStories {
		t.Run(story.name, func(t *testing.T) {
			s := story.life
			s.words = strings.Split(story.words, "; ")
			rig.play(t, t, s)
		})
	}
}
