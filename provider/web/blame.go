package web

import "dispatcher/provider"

// Blame says what a refusal is about, as far as the vendor's answer tells. Adapters know it of each code; what follows from it for
// the channel is decided by Answer.Result and nowhere else.
type Blame uint8

const (
	// OnChannel is a refusal that any message would get: credentials, credit, limits of the account. So is one that does not tell.
	OnChannel Blame = iota
	// OnSender is a refusal of who sends, wherever the message goes: a number that is not the account's, or no longer.
	OnSender
	// OnMessage is a refusal of one message: of its text, of where it goes, or of a sender there and not elsewhere.
	OnMessage
)

var blameNames = [...]string{OnChannel: "the channel", OnSender: "the sender", OnMessage: "the message"}

// String says it in words, for tests.
func (b Blame) String() string { return blameNames[b] }

// unfit reports whether a verdict makes its message provider.Result.Unfit, which leaves the channel to others. A refusal of the sender
// does only where the message brought its own: a sender that the channel gives to all its messages is refused with all of them, and a
// channel that refuses everything at once would look like the least busy one.
func (a *Answer) unfit(v Meaning) bool {
	return v.Outcome == provider.Refused && (v.Blame == OnMessage || v.Blame == OnSender && a.OwnSender)
}
