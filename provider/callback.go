package provider

import (
	"errors"
	"time"
)

// Callback is one HTTP request that a provider makes to our receipts listener. It is plain data,
// so that reading it is a pure function that can be fuzzed.
type Callback struct {
	Method string
	// URL is the address as the provider called it: the configured public URL with the path and the
	// query of the request, undecoded. Some sign it.
	URL string
	// Header holds the request's header fields under their canonical names (textproto).
	Header map[string][]string
	// Body is at most MaxCallback bytes long.
	Body []byte
	// Certificate reports whether the caller showed a client certificate that the listener verified.
	Certificate bool
	// At is when it arrived, on this machine's clock: what is too old by it is refused as ErrStale.
	At time.Time
}

// MaxCallback bounds the body of a callback, in bytes.
const MaxCallback = 1 << 20

// Get returns the first value of a header field, by its canonical name; empty when there is none.
func (c *Callback) Get(name string) string {
	if values := c.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// CallbackContent is what a callback says.
type CallbackContent struct {
	Receipts []Receipt
	Inbound  []Inbound
	// ReplayID tells this callback from every other one that is genuine, for as long as it is not
	// stale: a nonce, or the signature. Empty when the provider's scheme has none.
	ReplayID string
	// Answer is the body of the answer, with its content type; empty is an empty 200.
	Answer, AnswerType string
}

// CallbackReader is a channel whose provider calls back. ReadCallback is pure: it verifies who calls, in constant time, before it
// reads anything else, and changes nothing.
type CallbackReader interface {
	// ReadCallback returns what a callback says; its error wraps ErrForged, ErrStale or ErrMalformed and shows
	// no number, text or secret. What is genuine but means nothing to the dispatcher is an empty CallbackContent.
	ReadCallback(c *Callback) (CallbackContent, error)
}

// Why a callback is refused. Nothing that it says is believed then.
var (
	// ErrForged: its signature, secret or certificate is missing or wrong. Answered 403.
	ErrForged = errors.New("not signed by the provider")
	// ErrStale: it is signed, but too old or from the future. Answered 403.
	ErrStale = errors.New("its time is too far from now")
	// ErrMalformed: it is signed and cannot be read. Answered 400.
	ErrMalformed = errors.New("cannot be read")
)
