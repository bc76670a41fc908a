package twilio

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web/webtest"
)

// captured is a genuine callback with all that is needed to cut it differently.
type captured struct {
	listener  provider.CallbackReader
	url       string
	signature string
	text      string // the signed text after the URL
	genuine   provider.CallbackContent
	accepted  int // the number of cuts with a valid signature
}

func capture(t rapid.TB, l provider.CallbackReader, address string, form url.Values) *captured {
	t.Helper()
	c := &captured{
		listener: l, url: address, signature: twiliotest.Sign(token, address, form),
		text: webtest.Joined(webtest.Fields(form)),
	}
	var err error
	if c.genuine, err = c.read(address, []byte(form.Encode()), formType); err != nil ||
		len(c.genuine.Receipts)+len(c.genuine.Inbound) != 1 {
		t.Fatalf("the genuine callback reads as %+v, %v", c.genuine, err)
	}
	return c
}

const formType = "application/x-www-form-urlencoded"

func (c *captured) read(
	address string, body []byte, kind string,
) (provider.CallbackContent, error) {
	return c.listener.ReadCallback(&provider.Callback{
		Method: http.MethodPost, URL: address,
		Body: body, Header: map[string][]string{
			"X-Twilio-Signature": {c.signature}, "Content-Type": {kind},
		},
	})
}

// try fails the test if anything other than the genuine callback is accepted under the same
// signature.
func (c *captured) try(t rapid.TB, address string, fields []webtest.Field) {
	t.Helper()
	content, err := c.read(address, webtest.Encode(fields), formType)
	if !errors.Is(err, provider.ErrForged) {
		c.accepted++
	}
	if err == nil && !cmp.Equal(content, c.genuine) {
		t.Fatalf("under the same signature %q reads as %+v, want %+v", fields, content, c.genuine)
	}
}

func inboundForm(text, from, to string) url.Values {
	sid := twiliotest.Reference(0xabcdef0123)
	return url.Values{
		"AccountSid": {account}, "ApiVersion": {"2010-04-01"}, "Body": {text}, "From": {from},
		"FromCity": {"SAN FRANCISCO"}, "FromCountry": {"US"},
		"FromState": {"CA"}, "FromZip": {"94105"}, "MessageSid": {sid},
		"MessagingServiceSid": {service}, "NumMedia": {"0"}, "NumSegments": {"1"},
		"SmsMessageSid": {sid}, "SmsSid": {sid}, "SmsStatus": {"received"}, "To": {to},
		"ToCity": {"Tokyo From"}, "ToCountry": {"JP"}, "ToState": {""}, "ToZip": {""},
	}
}

func statusForm(status, code string) url.Values {
	sid := twiliotest.Reference(0xabcdef0123)
	form := url.Values{
		"AccountSid": {account}, "ApiVersion": {"2010-04-01"}, "From": {"+15550100100"},
		"MessageSid": {sid}, "MessageStatus": {status},
		"SmsSid": {sid}, "SmsStatus": {status}, "To": {"+447700900123"},
	}
	if code != "" {
		form.Set("ErrorCode", code)
	}
	return form
}

// statusFrom is the status of a message with this sender.
func statusFrom(sender, status, code string) url.Values {
	form := statusForm(status, code)
	form.Set("From", sender)
	return form
}

// adversarial lists senders equal to names of fields. An alphanumeric sender has at most 11
// characters.
var adversarial = []string{
	"BodyShop", "SmsBody", "FromBody", "Body", "BodyFrom", "BodyFromXYZ", "FromBodyTo1", "AddOns",
	"ApiVersion", "SmsStatusok", "ErrorCode30",
	"MediaMarkt", "FromCity", "MessageSid", "MessageSta", "SmsSidSM", "To", "ToFromBody1",
	"NumMedia", "MessageBody",
}

// forgedTexts lists texts that contain what a forger wants to be read as fields.
var forgedTexts = []string{
	"STOPCalling him tomorrow", "STOP", "STOPFrom+447700900999", "STOPFrom+447700900999FromCityX",
	"FromFrom", "", "Body", "STOPBodySTOP",
	"STOPFrom12345MessageSid" + sm1 + "SmsStatusreceivedTo+15550100Zzz",
	"ApiVersion2010-04-01BodySTOP", "STOPMessageStatusdelivered",
	"STOP&bodySHA256=00&x=", "STOPFromwhatsapp:+1555", "FromHSBCMessageSid" + sm1 + "To1234",
	"From Bob: To do",
	"STOPSmsStatusreceivedTowhatsapp:+14155238886", "Towhatsapp:+14155238886WaId15550001111",
	"Torcs:brand",
}

// TestNoOtherCutOfACallbackIsAccepted tries, for each text that a forger might send, every way to
// cut one more field out of a value, to extend a value over the fields after it, and to move signed
// text into the address.
func TestNoOtherCutOfACallbackIsAccepted(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	forms := map[string]url.Values{
		"delivered": statusForm("delivered", ""), "undelivered": statusForm("undelivered", "30003"),
	}
	for _, sender := range tier.Sample(adversarial, 3) {
		forms["from "+sender] = statusFrom(sender, "undelivered", "30003")
	}
	senders := []string{"+447700900123", "12345", "HSBC"}
	for i, text := range tier.Sample(forgedTexts, 8) { // each has thousands of cuts
		forms[text] = inboundForm(text, senders[i%len(senders)], "+15550100100")
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := callback
			if form.Has("MessageStatus") {
				address += "?key=" + webtest.Key
			}
			c := capture(t, l, address, form)
			c.tryEach(t, webtest.Fields(form))
			if c.accepted < 20 {
				t.Errorf("only %d of the cuts have the right signature: the test tries too little",
					c.accepted)
			}
		})
	}
}

func (c *captured) tryEach(t *testing.T, all []webtest.Field) {
	t.Helper()
	webtest.EachCut(all, func(cut []webtest.Field) { c.try(t, c.url, cut) })
	for i := range all { // move the text before it into the address
		moved := webtest.Joined(all[:i])
		for _, between := range []string{"", "?", "&"} {
			c.try(t, c.url+between+moved, all[i:])
		}
	}
}

// TestNoRandomCutOfACallbackIsAccepted cuts random texts anywhere.
func TestNoRandomCutOfACallbackIsAccepted(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	parts := rapid.SampledFrom(
		append([]string{
			"MessageSid", "SmsSid", "Messages", "To", "From", "Body", "Zz", " ", "a", "9", "+1",
			"received", "SmsStatus", "ErrorCode30003",
		}, forgedTexts...))
	tier.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 0, 5).Draw(rt, "text"), "")
		from := rapid.SampledFrom([]string{
			"+447700900123", "12345", "HSBC", "City Bank", "whatsapp:+447700900123",
		}).Draw(rt, "from")
		to := rapid.SampledFrom([]string{"+15550100100", "60777"}).Draw(rt, "to")
		form := inboundForm(text, from, to)
		c := &captured{
			listener: l, url: callback, signature: twiliotest.Sign(token, callback, form),
			text: webtest.Joined(webtest.Fields(form)),
		}
		var err error
		if c.genuine, err = c.read(c.url, []byte(form.Encode()), formType); err != nil {
			// A sender that looks like a field is not accepted under any cut.
			c.genuine = provider.CallbackContent{}
			if from != "City Bank" {
				rt.Fatal(err)
			}
		}
		for range 20 {
			c.try(rt, c.url, randomCut(rt, c.text))
		}
	})
}

// TestASenderThatIsCalledLikeAPlaceLeavesNoTextToForge: if the cut is at a From inside the text,
// what follows the real sender would be read as the sender's city.
// TestNoRandomCutOfACallbackIsAccepted found this case.
func TestASenderThatIsCalledLikeAPlaceLeavesNoTextToForge(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	for _, place := range []string{"City", "Country", "State", "Zip"} {
		form := inboundForm("MessageSidSTOPFrom+447700900999", place+" Bank", "+15550100100")
		c := &captured{
			listener: l, url: callback, signature: twiliotest.Sign(token, callback, form),
			text: webtest.Joined(webtest.Fields(form)),
		}
		c.try(t, callback, cutAt(c.text, "AccountSid", "ApiVersion", "Body", "From", "From"+place,
			"SmsSid", "SmsStatus", "To", "ToCity"))
	}
}

// cutAt splits a text at the first occurrence of each name after the previous one.
func cutAt(text string, names ...string) []webtest.Field {
	var fields []webtest.Field
	for i, name := range names {
		value := text[strings.Index(text, name)+len(name):]
		end := len(value)
		if i+1 < len(names) {
			end = strings.Index(value, names[i+1])
		}
		fields = append(fields, webtest.Field{Name: name, Value: value[:end]})
		text = value[end:]
	}
	return fields
}

// TestNoRandomCutOfAStatusIsAccepted cuts statuses whose senders are composed of names of fields.
func TestNoRandomCutOfAStatusIsAccepted(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	parts := rapid.SampledFrom(
		append([]string{"Body", "From", "To", "a", "1", "SmsStatus", "ErrorCode", "received"},
			adversarial...))
	tier.Check(t, func(rt *rapid.T) {
		sender := strings.Join(rapid.SliceOfN(parts, 0, 3).Draw(rt, "sender"), "")
		sender = sender[:min(len(sender), 11)]
		status := rapid.SampledFrom([]string{"sent", "delivered", "undelivered"}).Draw(rt, "status")
		code := rapid.SampledFrom([]string{"", "30003"}).Draw(rt, "code")
		c := capture(rt, l, callback, statusFrom(sender, status, code))
		for range 20 {
			c.try(rt, callback, randomCut(rt, c.text))
		}
	})
}

// randomCut splits a text into fields in the order of their names, mostly where a name could begin.
func randomCut(t *rapid.T, text string) []webtest.Field {
	var at []int
	for _, name := range []string{
		"AccountSid", "ApiVersion", "Body", "ErrorCode", "From", "FromCity", "MessageSid",
		"MessageStatus", "NumMedia", "SmsMessageSid", "SmsSid", "SmsStatus", "To", "ToCity", "Zz",
	} {
		for from := 0; ; {
			i := strings.Index(text[from:], name)
			if i < 0 {
				break
			}
			if rapid.IntRange(0, 2).Draw(t, "here") > 0 {
				at = append(at, from+i, from+i+len(name))
			}
			from += i + 1
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		i := rapid.IntRange(0, len(text)).Draw(t, "from")
		at = append(at, i, rapid.IntRange(i, len(text)).Draw(t, "to"))
	}
	var fields []webtest.Field
	slices.Sort(at)
	for i := 0; i+1 < len(at); i += 2 {
		end := len(text)
		if i+2 < len(at) {
			end = at[i+2]
		}
		f := webtest.Field{Name: text[at[i]:at[i+1]], Value: text[at[i+1]:end]}
		if n := len(fields); n > 0 && fields[n-1].Name >= f.Name {
			fields[n-1].Value += f.Name + f.Value
			continue
		}
		fields = append(fields, f)
	}
	if len(at) > 0 && at[0] > 0 {
		fields = append([]webtest.Field{{Name: text[:at[0]]}}, fields...)
	}
	return fields
}

// TestTheContentTypeDoesNotDecideWhatIsRead, because it is not signed.
func TestTheContentTypeDoesNotDecideWhatIsRead(t *testing.T) {
	t.Parallel()
	text := "x&Body=STOP&From=+447700900999&MessageSid=" + sm1 + "&SmsStatus=received&To=60777&z="
	r, err := twiliotest.JSON(twiliotest.Config{AuthToken: token}, callback, map[string]string{
		"MessageSid": twiliotest.Reference(2), "SmsStatus": "received", "Body": text,
		"From": "+447700900123", "To": "60777",
	})
	call := webtest.MadeCallback(t, r, err)
	for _, kind := range []string{"application/json", formType, ""} {
		call.Header["Content-Type"] = []string{kind}
		content, err := channelWith(t)(token).ReadCallback(call)
		if err != nil || len(content.Inbound) != 1 || content.Inbound[0].Text != text ||
			content.Inbound[0].From != "+447700900123" {
			t.Errorf("%q: %+v, %v", kind, content, err)
		}
	}
}

// TestAMessageWithAddOnsIsRead: add-ons are JSON, come before the text and contain the names of
// other fields.
func TestAMessageWithAddOnsIsRead(t *testing.T) {
	t.Parallel()
	form := inboundForm("STOP From To Body", "+447700900123", "+15550100100")
	form.Set("AddOns", `{"status":"successful","results":{"x":{"Body":"STOP","From":"+1"}}}`)
	c := capture(t, channelWith(t)(token), callback, form)
	if got := c.genuine.Inbound[0]; got.Text != "STOP From To Body" ||
		got.From != "+447700900123" || got.To != "+15550100100" {
		t.Errorf("%+v", got)
	}
}

// overWhatsApp holds the fields of messages that arrive over other networks, as their vendors send
// them, without the SIDs.
var overWhatsApp = map[string]url.Values{
	"text": {
		"Body": {"STOP"}, "ProfileName": {"From Body To"}, "MessageType": {"text"},
		"ChannelMetadata": {
			`{"type":"whatsapp","data":{"context":{"ProfileName":"From Body To","WaId":"447700900123"}}}`,
		},
	},
	"quick reply": {
		"Body": {"Yes"}, "ButtonText": {"Yes From"}, "ButtonPayload": {"BodySTOP"},
		"MessageType": {"button"}, "ProfileName": {"Ann"},
		"OriginalRepliedMessageSender": {"whatsapp:+14155238886"},
		"OriginalRepliedMessageSid":    {sm1},
	},
	"forwarded": {
		"Body": {"look"}, "Forwarded": {"true"}, "FrequentlyForwarded": {"true"},
		"ProfileName": {"Ann"},
	},
	"location": {
		"Address": {"1 From Street, Bodytown"}, "Label": {"To From"}, "Latitude": {"51.5"},
		"Longitude": {"-0.1"}, "Body": {""}, "ProfileName": {"Ann"},
	},
	"picture": {
		"Body": {"STOP"}, "MediaContentType0": {"image/jpeg"},
		"MediaUrl0": {"https://api.example/x"}, "NumMedia": {"1"}, "ProfileName": {"Ann"},
	},
	"rcs": {
		"Body": {"STOP"}, "ButtonText": {"STOP"}, "From": {"rcs:+447700900123"},
		"To": {"rcs:brand_agent"}, "WaId": {""},
	},
}

// TestAMessageOfAnotherNetworkIsLeftOut whatever fields it has and however it is cut. The vendor
// gets a success answer and does not repeat it.
func TestAMessageOfAnotherNetworkIsLeftOut(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	for name, more := range overWhatsApp {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sid := twiliotest.Reference(0xabcdef0123)
			form := url.Values{
				"AccountSid": {account}, "ApiVersion": {"2010-04-01"},
				"From": {"whatsapp:+447700900123"}, "MessageSid": {sid}, "NumMedia": {"0"},
				"NumSegments": {"1"}, "ReferralNumMedia": {"0"}, "SmsMessageSid": {sid},
				"SmsSid": {sid}, "SmsStatus": {"received"},
				"To": {"whatsapp:+14155238886"}, "WaId": {"447700900123"},
			}
			for field, value := range more {
				if form[field] = value; value[0] == "" && field == "WaId" {
					form.Del(field)
				}
			}
			c := captured{
				listener: l, url: callback, signature: twiliotest.Sign(token, callback, form),
				text: webtest.Joined(webtest.Fields(form)),
			}
			var err error
			if c.genuine, err = c.read(callback, []byte(form.Encode()), formType); err != nil ||
				len(c.genuine.Receipts)+len(c.genuine.Inbound) != 0 {
				t.Fatalf("%+v, %v", c.genuine, err)
			}
			c.tryEach(t, webtest.Fields(form))
			if c.accepted < 20 {
				t.Errorf("only %d of the cuts have the right signature: the test tries too little",
					c.accepted)
			}
		})
	}
}
