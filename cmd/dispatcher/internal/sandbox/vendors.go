package sandbox

import (
	"fmt"

	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web/webtest"
)

// vendor is how the sandbox plays a kind of provider.
type vendor struct {
	// word names the kind, and provider is the channel's word for it in the routing document: an API each, of which a
	// provider may have several.
	word, provider string
	// open makes an account, with its secrets in files. callback is where an account calls that has one
	// address for all its messages.
	open func(s *secrets, callback string) account
	// reference is the id that the vendor gives to a message.
	reference func(n uint64) string
}

// account is what a customer and a vendor know of each other.
type account struct {
	// settings are those of the channel, without where the carrier listens.
	settings map[string]any
	// shape is the vendor's API, which begins at path; nil for SMPP.
	shape webtest.Protocol
	path  string
	// systemID and password are those of SMPP.
	systemID, password string
}

// vendors is the one list of what the sandbox can play.
func vendors() []vendor {
	return []vendor{
		{"smpp", "smpp", smppAccount, plainReference},
		{"aws", "aws", awsAccount, uuidReference},
		{"bird", "bird", birdAccount, hexReference},
		{"httpapi", "httpapi", httpapiAccount, plainReference},
		{"infobip", "infobip", infobipAccount, plainReference},
		{"plivo", "plivo", plivoAccount, plivotest.Reference},
		{"sinch", "sinch", sinchAccount, plainReference},
		{"telnyx", "telnyx", telnyxAccount, telnyxtest.Reference},
		{"twilio", "twilio", twilioAccount, twiliotest.Reference},
		{"vonage", "vonage", vonageAccount, uuidReference},
		{"vonage-sms", "vonage", vonageSMSAccount, digitsReference},
	}
}

// Providers are the words of all kinds that the sandbox can play.
func Providers() []string {
	var words []string
	for _, v := range vendors() {
		words = append(words, v.word)
	}
	return words
}

func vendorOf(word string) *vendor {
	for _, v := range vendors() {
		if v.word == word {
			return &v
		}
	}
	return nil
}

// plainReference is for vendors that do not say how their ids look.
func plainReference(n uint64) string { return fmt.Sprintf("sandbox-%x", n) }

// hexReference has 32 digits, as a UUID without its dashes.
func hexReference(n uint64) string { return fmt.Sprintf("%032x", n) }

// digitsReference has 16 digits, in capitals.
func digitsReference(n uint64) string { return fmt.Sprintf("%016X", n) }

// uuidReference is a UUID (RFC 9562, version 8).
func uuidReference(n uint64) string { return fmt.Sprintf("00000000-0000-8000-8000-%012x", n) }

func smppAccount(s *secrets, _ string) account {
	file, password := s.file("password", func() string { return "sandbox1" }) // SMPP takes eight characters
	return account{systemID: "sandbox", password: password, settings: map[string]any{"system_id": "sandbox", "password_file": file}}
}
