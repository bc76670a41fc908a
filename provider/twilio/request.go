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

// retries makes Twilio repeat a failed callback, up to five times within 15 seconds, after a 5xx
// too ("Webhook connection overrides"). By default it repeats once, and only if it gets no
// connection. A fragment is neither sent nor signed.
const retries = "#rc=5&rp=ct,rt,5xx"

// api writes requests and reads answers. It is pure except for the clock that now reads.
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

// Compose writes a submission. Smart encoding is turned off, so that the message is sent, and
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

// sender sets the sender. If there is a messaging service, the sender of a message has to belong to
// it.
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

// Twilio signs the names and values of a form without separators. Somebody who has captured a
// callback can therefore cut the same text into other names and values under the same signature:
// "Body=STOPCalling him" into "Body=STOP" and a field "Calling him". So the fields are found in the
// signed text itself, and a form that differs from them is refused. Only Twilio's own cut is
// accepted.

// agrees reports whether a form, which has no name twice, has the fields of its signed text, cut in
// the one accepted way. A message of a subscriber has, in the order of the names, AddOns,
// ApiVersion, Body, From and the rest. Only Body comes from outside. It ends at the last From,
// because the fields after Body have no other one; so the subscriber's words stay within Body, even
// if they look like fields. A status callback has no Body and no other value from outside: each
// field is found in the text by its pattern. The name of its sender may look like a field, BodyShop
// for example, and is left out of the search. The two kinds differ before the first From, where no
// status has a Body.
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

// placedTwice reports whether a field such as FromCity occurs twice after the text of a message.
// Then the name of the sender begins like such a field, "City Bank", and the text was cut at a
// wrong From.
func placedTwice(rest string) bool {
	if end := strings.LastIndex(rest, "SmsStatus"); end >= 0 {
		rest = rest[:end]
	}
	return slices.ContainsFunc(places, func(place string) bool {
		return strings.Count(rest, "From"+place) > 1
	})
}

// isInbound reports whether the part before the first From belongs to a message of a subscriber,
// not to a status.
func isInbound(before string) bool {
	return strings.Contains(before, "Body") || strings.Contains(before, "AddOns") ||
		beginsWithAddress.MatchString(before)
}

// ofOtherNetwork reports whether a signed text belongs to a message over WhatsApp, RCS or another
// network than SMS. Such forms have more fields from outside (ButtonText, ProfileName, Label), also
// before From, so the right cut cannot be recognised. Nor is the cut needed, because such messages
// are ignored. The signed text ends with our address, which names the network and contains nothing
// from outside.
func ofOtherNetwork(signed string) bool {
	before, _, _ := strings.Cut(signed, "From")
	return isInbound(before) && toOtherNetwork.MatchString(signed)
}

// withoutSender removes the sender from the text after the From of a status callback. The sender
// ends where MessageSid or MessageStatus follows with its value: either is longer than a sender can
// be.
func withoutSender(behind string) string {
	if end := behindSender.FindStringIndex(behind); end != nil {
		return behind[end[0]:]
	}
	return behind
}

// split returns the text of a message, and the rest: From and the fields after it.
func split(signed string) (text, rest string) {
	begin := strings.Index(signed, "Body") + len("Body")
	if at := beforeBody.FindStringIndex(signed); at != nil {
		begin = at[1] // AddOns precedes it and holds JSON, which may contain the word
	}
	end := len(signed)
	if at := strings.LastIndex(signed, "SmsStatus"); at >= 0 {
		end = at // the recipient's city follows it, which may have any name
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
	// beginsWithAddress matches the start of a location's form, whose address comes from outside.
	beginsWithAddress = regexp.MustCompile(`^AccountSidAC[0-9a-f]{32}Address`)
	// toOtherNetwork matches the end of a form that was sent to an address of another network. The
	// text of an SMS that looks like such an address does not match: at least a SID follows it, which
	// is longer than the pattern allows.
	toOtherNetwork = regexp.MustCompile(
		`To(?:whatsapp:\+[0-9]{5,15}|[a-z]+:[0-9A-Za-z_.-]{1,40})(?:WaId[0-9]{5,20})?$`)

	// places are the suffixes of fields about both numbers: FromCity, ToCity, ...
	places = []string{"City", "Country", "State", "Zip"}
	// afterFrom and afterTo are names that follow From and To.
	afterFrom = []string{
		"FromCity", "FromCountry", "FromState", "FromZip", "Media", "MessageSid",
		"MessagingServiceSid", "NumMedia", "NumSegments",
	}
	afterTo = []string{"ToCity", "ToCountry", "ToState", "ToZip"}

	// behindSender matches what follows the sender of a status callback.
	behindSender = regexp.MustCompile(`MessageSid(?:SM|MM)[0-9a-f]{32}|MessageStatus[a-z_-]+`)

	sids     = regexp.MustCompile(`(?:MessageSid|SmsSid)((?:SM|MM)[0-9a-f]{32})`)
	statuses = regexp.MustCompile(`MessageStatus([a-z_-]+)`)
	arrivals = regexp.MustCompile(`SmsStatus([a-z_-]+)`)
	failures = regexp.MustCompile(`ErrorCode([0-9]+)`)

	// namePattern matches Twilio's field names.
	namePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// messagePattern matches the SID of a message.
	messagePattern = regexp.MustCompile(`^(?:SM|MM)[0-9a-f]{32}$`)
)

// agreesOnWords compares the fields that have a pattern. Each of them has one value in the text.
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

// agreesOnTo compares the recipient. It is searched after SmsStatus, because the names are in
// order.
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
