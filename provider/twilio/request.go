package twilio

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

const (
	// longestText is how many characters a body may have (error 21617).
	longestText = 1600
	// longestValidity and shortestValidity bound ValidityPeriod (error 90007).
	longestValidity  = 36_000 * time.Second
	shortestValidity = time.Second
)

// retries makes Twilio call again, up to five times within 15 seconds, after a 5xx too ("Webhook
// connection overrides"); by itself it does so once, and only when it gets no connection. A
// fragment is neither sent nor signed.
const retries = "#rc=5&rp=ct,rt,5xx"

// api writes requests and reads answers. It is pure but for the clock that now reads.
type api struct {
	cfg    Config
	path   string
	header http.Header
	now    func() time.Time
}

func newAPI(cfg Config, now func() time.Time) *api {
	credentials := base64.StdEncoding.EncodeToString([]byte(cfg.KeySID + ":" + cfg.KeySecret))
	return &api{
		cfg: cfg, now: now,
		path: "/2010-04-01/Accounts/" + cfg.AccountSID + "/Messages.json", header: http.Header{
			"Authorization": {"Basic " + credentials},
			"Content-Type":  {"application/x-www-form-urlencoded"},
			"Accept":        {"application/json"},
		},
	}
}

// Compose creates a Message. Smart encoding is switched off, so that the message is sent, and
// billed, in the alphabet that its text needs.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	switch n := utf8.RuneCountInString(s.Text); {
	case n == 0:
		return nil, web.Unsendable("there is no text")
	case n > longestText:
		return nil, errors.New("the text has more than 1600 characters")
	}
	form := url.Values{"To": {s.To}, "Body": {s.Text}, "SmartEncoded": {"false"}}
	if err := a.sender(form, s.From); err != nil {
		return nil, err
	}
	if ends := s.Ends(); !ends.IsZero() {
		left := min(max(ends.Sub(a.now()), shortestValidity), longestValidity)
		form.Set("ValidityPeriod", strconv.Itoa(int(left/time.Second)))
	}
	if a.cfg.receipts() {
		form.Set("StatusCallback", web.WithKey(a.cfg.Callback, s.Key)+retries)
	}
	return &web.Request{
		Method: http.MethodPost, URL: a.path, Header: a.header, Body: []byte(form.Encode()),
	}, nil
}

// sender names who sends. A sender that a message names has to belong to the messaging service, if
// there is one.
func (a *api) sender(form url.Values, from string) error {
	if a.cfg.MessagingService != "" {
		form.Set("MessagingServiceSid", a.cfg.MessagingService)
	} else if from == "" {
		from = a.cfg.From
	}
	if from != "" {
		form.Set("From", from)
	} else if a.cfg.MessagingService == "" {
		return errors.New("neither the message nor the channel names a sender")
	}
	return nil
}

// Twilio signs the names and values of a form one behind the other, with nothing between them.
// Whoever has captured a callback can therefore cut the same text into other names and values under
// the same signature: "Body=STOPCalling him" into "Body=STOP" and a field "Calling him". What a
// form means is taken from the signed text alone, and a form that reads otherwise is refused. So no
// cut has a meaning but the one that Twilio made.

// agrees reports whether a form, which has no name twice, is the one cut of its signed text that is
// accepted.
//
// A message of a subscriber has, in the order of the names, AddOns, ApiVersion, Body, From and the
// rest. Only Body is written by a stranger. It ends at the last From, because the rest holds no
// other one; so what a subscriber writes into his text is text, whatever it looks like. A status
// callback has no Body, and nothing in it that a stranger writes: each field has a form by which it
// is found in the text. Its sender may be called like a field, BodyShop for example, and is left
// out of the search. The two differ in what stands before the first From, where no status has a
// Body.
func agrees(f fields, signed string) bool {
	body, hasBody := f["Body"]
	before, behind, _ := strings.Cut(signed, "From")
	switch inbound := isInbound(before); {
	case inbound != hasBody:
		return false
	case !inbound:
		return agreesOnWords(f, before+withoutSender(behind))
	}
	text, rest := split(signed)
	from, ok := strings.CutPrefix(rest, "From")
	if !ok || text != body || f["From"] == "" || f["From"] != web.LeadingValue(from, afterFrom) ||
		placedTwice(rest) {
		return false
	}
	return agreesOnWords(f, rest) && agreesOnTo(f["To"], rest)
}

// placedTwice reports whether a place of the sender stands twice in what follows a text: then the
// sender itself is called like one, "City Bank", and what was taken for the sender is of the text.
func placedTwice(rest string) bool {
	if end := strings.LastIndex(rest, "SmsStatus"); end >= 0 {
		rest = rest[:end]
	}
	return slices.ContainsFunc(places, func(place string) bool {
		return strings.Count(rest, "From"+place) > 1
	})
}

// isInbound reports whether what stands before the first From is of a message of a subscriber, not
// of a status.
func isInbound(before string) bool {
	return strings.Contains(before, "Body") || strings.Contains(before, "AddOns") ||
		beginsWithAddress.MatchString(before)
}

// ofOtherNetwork reports whether a signed text is that of a message which reached us over WhatsApp,
// RCS or another network than SMS. Such forms have more fields that strangers write (ButtonText,
// ProfileName, Label), also before From, so that no cut of them can be told from the right one; and
// none is needed, because the message is left out. The text says so at its end, with the address
// that was written to: that is ours, and nobody else writes anything there.
func ofOtherNetwork(signed string) bool {
	before, _, _ := strings.Cut(signed, "From")
	return isInbound(before) && toOtherNetwork.MatchString(signed)
}

// withoutSender takes the text behind the From of a status callback and cuts off the sender. It
// ends where the message is named or its status said, which is longer than a sender can be.
func withoutSender(behind string) string {
	if end := behindSender.FindStringIndex(behind); end != nil {
		return behind[end[0]:]
	}
	return behind
}

// split returns the text of a message, and what follows it: From and the fields behind it.
func split(signed string) (text, rest string) {
	begin := strings.Index(signed, "Body") + len("Body")
	if at := beforeBody.FindStringIndex(signed); at != nil {
		begin = at[1] // AddOns stands before it and holds JSON, in which the word may be
	}
	end := len(signed)
	if at := strings.LastIndex(signed, "SmsStatus"); at >= 0 {
		end = at // behind it stands where the recipient is, which may be a city of any name
	}
	for {
		end = strings.LastIndex(signed[:end], "From")
		if end < begin {
			return signed[begin:], ""
		}
		if !startsWithAny(signed[end+len("From"):], places) {
			return signed[begin:end], signed[end:]
		}
	}
}

var (
	beforeBody = regexp.MustCompile(`ApiVersion[0-9]{4}-[0-9]{2}-[0-9]{2}Body`)
	// beginsWithAddress is how the form of a location begins, the address of which is text of a
	// stranger.
	beginsWithAddress = regexp.MustCompile(`^AccountSidAC[0-9a-f]{32}Address`)
	// toOtherNetwork is how a form ends that was sent to an address of another network. Nothing
	// else fits behind the scheme: a text of an SMS that looks like it is followed by a SID at
	// least, which is longer.
	toOtherNetwork = regexp.MustCompile(
		`To(?:whatsapp:\+[0-9]{5,15}|[a-z]+:[0-9A-Za-z_.-]{1,40})(?:WaId[0-9]{5,20})?$`)

	// places are what Twilio tells of both numbers: FromCity, ToCity, ...
	places = []string{"City", "Country", "State", "Zip"}
	// afterFrom and afterTo are names that follow From and To.
	afterFrom = []string{
		"FromCity", "FromCountry", "FromState", "FromZip", "Media", "MessageSid",
		"MessagingServiceSid", "NumMedia", "NumSegments",
	}
	afterTo = []string{"ToCity", "ToCountry", "ToState", "ToZip"}

	// behindSender is what follows the sender of a status callback.
	behindSender = regexp.MustCompile(`MessageSid(?:SM|MM)[0-9a-f]{32}|MessageStatus[a-z_-]+`)

	sids     = regexp.MustCompile(`(?:MessageSid|SmsSid)((?:SM|MM)[0-9a-f]{32})`)
	statuses = regexp.MustCompile(`MessageStatus([a-z_-]+)`)
	arrivals = regexp.MustCompile(`SmsStatus([a-z_-]+)`)
	failures = regexp.MustCompile(`ErrorCode([0-9]+)`)

	// aName is what Twilio calls a field.
	aName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// aMessage is the SID of a message.
	aMessage = regexp.MustCompile(`^(?:SM|MM)[0-9a-f]{32}$`)
)

// agreesOnWords compares the fields that have a form of their own. Each of them has one value in
// the text.
func agreesOnWords(f fields, signed string) bool {
	sid, ok := web.OnlyValue(sids, signed)
	if !ok {
		return false
	}
	for _, name := range []string{"MessageSid", "SmsSid", "SmsMessageSid"} {
		if value, there := f[name]; there && value != sid {
			return false
		}
	}
	for name, form := range map[string]*regexp.Regexp{
		"MessageStatus": statuses, "SmsStatus": arrivals, "ErrorCode": failures,
	} {
		if value, ok := web.OnlyValue(form, signed); !ok || value != f[name] {
			return false
		}
	}
	return f.first("MessageSid", "SmsSid") == sid
}

// agreesOnTo finds the number that was written to behind SmsStatus, which the order of the names
// puts before it.
func agreesOnTo(to, rest string) bool {
	at := arrivals.FindStringIndex(rest)
	if at == nil {
		return to == ""
	}
	_, behind, ok := strings.Cut(rest[at[1]:], "To")
	return ok && to != "" && to == web.LeadingValue(behind, afterTo)
}

func startsWithAny(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes,
		func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
