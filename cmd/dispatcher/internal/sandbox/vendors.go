package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web/webtest"
)

// vendor is how the sandbox simulates a kind of provider.
type vendor struct {
	// word names the kind, and provider is the word of the routing document. Each kind is one API; a
	// provider may have several.
	word, provider string
	// open creates an account, with its secrets in files. callback is the address that the account
	// calls, if it has one address for all its messages.
	open func(s *secrets, callback string) account
	// reference is the id that the vendor gives to a message.
	reference func(n uint64) string
}

// account has the settings for the customer and the API of the vendor, with the same secrets.
type account struct {
	// settings are the settings of the channel, without the address of the carrier.
	settings map[string]any
	// shape is the vendor's API with the base path path; nil for SMPP.
	shape webtest.Protocol
	path  string
	// systemID and password are for binds of SMPP.
	systemID, password string
}

// vendors lists every kind that the sandbox can simulate.
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

// Providers are the words for all kinds that the sandbox can simulate.
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

// plainReference is for vendors that do not document the format of their ids.
func plainReference(n uint64) string { return fmt.Sprintf("sandbox-%x", n) }

// hexReference has 32 digits, as a UUID without its dashes.
func hexReference(n uint64) string { return fmt.Sprintf("%032x", n) }

// digitsReference has 16 hexadecimal digits, in capitals.
func digitsReference(n uint64) string { return fmt.Sprintf("%016X", n) }

// uuidReference is a UUID (RFC 9562, version 8).
func uuidReference(n uint64) string { return fmt.Sprintf("00000000-0000-8000-8000-%012x", n) }

// secrets are the files of accounts. Existing files are used again, so that a sandbox can be
// restarted while a dispatcher runs.
type secrets struct {
	folder string // where they are
	prefix string // of names within it
	err    error  // the first error
}

// file returns the path of a secret and its content, which fresh creates if there is none yet.
func (s *secrets) file(name string, fresh func() string) (path, content string) {
	path = filepath.Join(s.folder, s.prefix+"."+name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content = fresh()
		err = os.WriteFile(path, []byte(content), 0o600)
		text = []byte(content)
	}
	if err != nil {
		s.fail(err)
	}
	return path, string(text)
}

func (s *secrets) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("secret of a sandbox account: %w", err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// text is a random secret in letters and digits.
func (s *secrets) text(name string) (path, content string) { return s.file(name, rand.Text) }
