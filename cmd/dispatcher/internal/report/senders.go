package report

import (
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
)

// replacesSender reports whether a channel of the document puts a sender of its own in the place of a recorded
// message's. What it puts there is not told: it may be somebody's number.
func (t *teller) replacesSender(channel string) bool {
	ch := channelNamed(t.doc, channel)
	if ch == nil {
		return false
	}
	senders := sendersOf(&ch.Senders)
	return dispatch.ReplacesSender(&t.record.Message, &senders, numbers.NewCountries().Of)
}

// underOther says that an attempt went out under another sender than the message's. That is known of attempts that went by the
// document at hand.
func (t *teller) underOther(a *Attempt) string {
	if version := a.RankedVersion; version != 0 && version != t.record.Message.Plan.Version || !t.replacesSender(a.Channel) {
		return ""
	}
	return ", under the sender that it has for the country in place of the message's own"
}

func sendersOf(s *config.Senders) dispatch.Senders {
	out := dispatch.Senders{Default: s.Default}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, dispatch.SenderRule{Countries: r.Countries, Allow: r.Allow, IDs: r.IDs, From: r.From})
	}
	return out
}
