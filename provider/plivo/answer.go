package plivo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// queued is the answer to a message that was taken: the fields used here.
type queued struct {
	UUIDs []string `json:"message_uuid"`
}

// refusal is the body of a failed answer. Error is a sentence, or an object that contains one:
// Plivo has no codes here.
type refusal struct {
	Error json.RawMessage `json:"error"`
}

// Classify reads the answer to a submission.
func (*api) Classify(a *web.Answer) provider.Result {
	switch a.Status {
	case http.StatusAccepted, http.StatusOK, http.StatusCreated:
		var m queued
		if err := json.Unmarshal(a.Body, &m); err != nil || len(m.UUIDs) == 0 || m.UUIDs[0] == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.UUIDs[0]}
	case http.StatusBadRequest:
		return blame(a)
	case http.StatusPaymentRequired:
		return a.Result(web.Refused("the account has no credit"), "")
	case http.StatusNotFound:
		if sentence(a) != "" {
			return a.Result(web.Refused("there is no such account"), "")
		}
	case http.StatusMethodNotAllowed:
		return a.Result(web.Refused("the API does not take messages here"), "")
	}
	if r, ok := a.ByStatus(""); ok {
		return r
	}
	return a.Unreadable("")
}

// ofChannel are words of a sentence for which another channel may succeed. The first that occurs
// decides: a sender that is not allowed in one country is about the message, one that does not
// belong to the account is about the sender.
var ofChannel = []struct {
	word    string
	meaning web.Meaning
}{
	{"credit", web.Refused("the account has no credit")},
	{"balance", web.Refused("the account has no credit")},
	{"powerpack", web.Refused("the powerpack cannot be used")},
	{"country", web.Unfit("the account may not send to this country")},
	{"region", web.Unfit("the account may not send to this region")},
	{"src", web.BadSender("the sender is not valid")},
	{"source", web.BadSender("the sender is not valid")},
	{"sender", web.BadSender("the sender is not valid")},
	// "This caller ID is not allowed for outbound message"
	{"caller", web.BadSender("the sender is not allowed")},
	{"account", web.Refused("the account may not send this")},
	{"url", web.Refused("the callback URL is not valid")},
	{"text", web.Unfit("the API does not take such a text")},
}

// ofRecipient are words for the recipient. "447700900123 is not a valid phone number" is Plivo's
// documented answer about the destination.
var ofRecipient = []string{"dst", "destination", "phone"}

// beside are words for the recipient. In a sentence about the sender they mean that the two do not
// fit together: they are equal, or one is not allowed for the other. A "phone number" may be the
// sender's own.
var beside = []string{"dst", "destination"}

// blame reads a 400: "a parameter is missing or is invalid", so nothing was queued. The message is
// at fault only if the sentence names the recipient and nothing of the channel.
func blame(a *web.Answer) provider.Result {
	said := sentence(a)
	if said == "" {
		return a.Unreadable("")
	}
	words := strings.FieldsFunc(strings.ToLower(said),
		func(c rune) bool { return c < 'a' || c > 'z' })
	for _, p := range ofChannel {
		if slices.Contains(words, p.word) {
			v := p.meaning
			if v.Blame == web.OnSender && containsAny(words, beside) {
				v.Blame = web.OnMessage
			}
			return a.Result(v, p.word)
		}
	}
	invalid := slices.Contains(words, "invalid") ||
		slices.Contains(words, "not") && slices.Contains(words, "valid")
	switch toOne := containsAny(words, ofRecipient); {
	case toOne && invalid:
		return a.Result(web.Rejected("the recipient is not valid"), "dst")
	case toOne:
		return a.Result(web.Unfit("the account may not send to this recipient"), "")
	}
	return a.Result(web.Refused("a parameter is missing or not valid"), "")
}

// containsAny reports whether the words contain one of these.
func containsAny(words, these []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(these, w) })
}

// sentence is Plivo's error text; empty if it cannot be read.
func sentence(a *web.Answer) string {
	var r refusal
	if json.Unmarshal(a.Body, &r) != nil || string(r.Error) == "null" {
		return ""
	}
	return strings.Trim(string(r.Error), `"`)
}

// states are the values of Status. All others are Pending.
var states = map[string]provider.ReceiptState{
	"delivered": provider.Delivered, "read": provider.Delivered,
	"undelivered": provider.Undelivered, "failed": provider.Undelivered,
	"rejected": provider.Undelivered,
}

// causes are the values of ErrorCode (Messaging, Error Codes).
var causes = map[string]provider.Cause{
	"10":   provider.Unspecified,   // invalid message
	"20":   provider.NetworkError,  // network error
	"30":   provider.Spam,          // spam detected
	"40":   provider.BadSender,     // invalid source number
	"50":   provider.UnknownNumber, // invalid destination number
	"60":   provider.NetworkError,  // loop detected
	"70":   provider.UnknownNumber, // destination permanently unavailable
	"80":   provider.Absent,        // destination temporarily unavailable
	"90":   provider.NetworkError,  // no route
	"100":  provider.Blocked,       // prohibited by carrier
	"110":  provider.Unspecified,   // message too long
	"200":  provider.OptedOut,      // STOP
	"201":  provider.BadSender,     // US toll-free number to Canada
	"420":  provider.Expired,       // expired in Plivo's queue
	"450":  provider.Blocked,       // destination country not enabled
	"900":  provider.NoCredit,      // insufficient credit
	"1000": provider.Unspecified,   // unknown
}
