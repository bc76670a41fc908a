package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// Defaults of the settings that have one.
const (
	DefaultWindow          = 100
	DefaultEnquireLink     = 30 * time.Second
	DefaultResponseTimeout = 10 * time.Second
	DefaultConnectTimeout  = 10 * time.Second
	DefaultReconnectMin    = 500 * time.Millisecond
	DefaultReconnectMax    = 30 * time.Second
)

const (
	maxBinds  = 64
	maxWindow = 10_000
)

// Mode says with which kind of binds a channel sends and receives.
type Mode uint8

const (
	// Transceiver uses one connection for both directions.
	Transceiver Mode = iota
	// TransmitterReceiver uses a pair of connections, one for each direction.
	TransmitterReceiver
)

// Alphabet is what an SMSC takes data_coding 0 for. The standard leaves it to the
// SMSC (section 5.2.19), so it is a setting of the channel.
type Alphabet uint8

const (
	// GSM7 is the GSM default alphabet, one septet in each octet.
	GSM7 Alphabet = iota
	// Latin1 is ISO 8859-1.
	Latin1
	// ASCII is 7-bit ASCII.
	ASCII
)

// LongMessages is how a text that does not fit one segment travels.
type LongMessages uint8

const (
	// UDH8 cuts it into segments with a user data header and an 8-bit reference.
	UDH8 LongMessages = iota
	// UDH16 is the same with a 16-bit reference.
	UDH16
	// SAR cuts it into segments that carry sar_* parameters; the SMSC writes the header.
	SAR
	// MessagePayload hands the whole text over in message_payload; the SMSC cuts it.
	MessagePayload
)

// ValidityFormat is how validity_period is written (section 7.1.1).
type ValidityFormat uint8

const (
	// Absolute is a point of time in UTC.
	Absolute ValidityFormat = iota
	// Relative is a period that counts from the arrival at the SMSC.
	Relative
)

// Config describes one channel. Keys of the routing document that fill it are named
// in ParseSettings. The zero value of an optional field is its default.
type Config struct {
	// Addresses are host:port pairs that are tried in turn; each bind starts with
	// another one.
	Addresses []string
	// TLS encrypts the connections; nil leaves them plain. An empty ServerName stands
	// for the host that is dialled.
	TLS *tls.Config

	SystemID         string
	Password         string
	SystemType       string
	InterfaceVersion byte // pdu.Version34 unless set
	Bind             Mode

	Binds  int // how many connections (or pairs) are held; 1 unless set
	Window int // unanswered submit_sm that each bind may have; DefaultWindow unless set

	EnquireLink     time.Duration // between two enquire_link
	ResponseTimeout time.Duration // until an unanswered request is given up
	ConnectTimeout  time.Duration // for the dial and the TLS handshake
	ReconnectMin    time.Duration // the shortest pause between two connections
	ReconnectMax    time.Duration // the longest

	From                                   string // sender of messages that name none
	SourceTON, SourceNPI, DestTON, DestNPI *byte  // nil derives them from the address

	ServiceType        string
	RegisteredDelivery byte          // pdu.ReceiptNone, ReceiptFinal, ...
	Validity           time.Duration // of messages that name none; zero leaves it to the SMSC
	ValidityFormat     ValidityFormat
	Alphabet           Alphabet
	LongMessages       LongMessages
	// Outcomes overrides what a command_status means, for the codes that a vendor
	// defines or uses in his own way. Accepted is not allowed.
	Outcomes map[pdu.Status]provider.Outcome

	// OnState, if set, hears of every change of a bind, loud failures included. It is
	// called from the goroutine of that bind and must not block.
	OnState func(State)
	// OnReceipt, if set, gets every receipt and reports whether it took it; it must not block. One that
	// was not taken is answered pdu.StatusReceiverTemporary, so that the SMSC sends it again. It is called
	// from several goroutines. Setting it makes every submit ask for the final receipt,
	// whatever RegisteredDelivery says.
	OnReceipt func(provider.Receipt) (taken bool)
	// OnDeliver, if set, gets every deliver_sm and data_sm that OnReceipt does not, in order for each bind, and
	// returns the status that the SMSC is answered: pdu.StatusOK when the content is in
	// safe hands, pdu.StatusReceiverTemporary to get it again later. ctx ends with the
	// connection. Without it everything is answered pdu.StatusOK.
	OnDeliver func(ctx context.Context, d pdu.DeliverSM) pdu.Status
	// Dial replaces the TCP dial in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	orElse(&c.InterfaceVersion, pdu.Version34)
	orElse(&c.Binds, 1)
	orElse(&c.Window, DefaultWindow)
	orElse(&c.EnquireLink, DefaultEnquireLink)
	orElse(&c.ResponseTimeout, DefaultResponseTimeout)
	orElse(&c.ConnectTimeout, DefaultConnectTimeout)
	orElse(&c.ReconnectMin, DefaultReconnectMin)
	orElse(&c.ReconnectMax, max(DefaultReconnectMax, c.ReconnectMin))
	if c.OnReceipt != nil {
		c.RegisteredDelivery = c.RegisteredDelivery&^pdu.ReceiptMask | pdu.ReceiptFinal
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

func orElse[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}

// Validate reports every setting that cannot work, each under its key in the
// routing document. It never shows the password.
func (c Config) Validate() error {
	c = c.withDefaults()
	faults := []error{c.validateAddresses(), c.validateCredentials()}
	faults = append(faults,
		between("binds", c.Binds, 1, maxBinds),
		between("window", c.Window, 1, maxWindow),
		atLeast("enquire_link", c.EnquireLink, 10*time.Millisecond),
		atLeast("response_timeout", c.ResponseTimeout, 10*time.Millisecond),
		atLeast("connect_timeout", c.ConnectTimeout, 10*time.Millisecond),
		atLeast("reconnect_min", c.ReconnectMin, time.Millisecond),
		atLeast("reconnect_max", c.ReconnectMax, c.ReconnectMin),
		atLeast("validity", c.Validity, 0),
		shorterThan("service_type", c.ServiceType, 6),
		c.validateChoices(),
	)
	return errors.Join(faults...)
}

func (c Config) validateAddresses() error {
	if len(c.Addresses) == 0 {
		return errors.New("address: name at least one host:port")
	}
	for _, address := range c.Addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("address: %q is not host:port", address)
		}
	}
	return nil
}

// validateCredentials holds the lengths of section 4.1.1, the password's excepted
// (see package pdu).
func (c Config) validateCredentials() error {
	if c.SystemID == "" {
		return errors.New("system_id: is missing")
	}
	if len(c.Password) > 64 || strings.ContainsRune(c.Password, 0) {
		return errors.New("password_file: the password is longer than 64 characters or holds a NUL")
	}
	return errors.Join(shorterThan("system_id", c.SystemID, 16), shorterThan("system_type", c.SystemType, 13))
}

func (c Config) validateChoices() error {
	switch c.InterfaceVersion {
	case pdu.Version33, pdu.Version34, pdu.Version50:
	default:
		return fmt.Errorf("interface_version: 0x%02x is none of 3.3, 3.4 and 5.0", c.InterfaceVersion)
	}
	if c.Bind > TransmitterReceiver {
		return fmt.Errorf("bind: unknown mode %d", c.Bind)
	}
	if c.Alphabet > ASCII {
		return fmt.Errorf("alphabet: unknown alphabet %d", c.Alphabet)
	}
	if c.LongMessages > MessagePayload {
		return fmt.Errorf("long_messages: unknown way %d", c.LongMessages)
	}
	if c.ValidityFormat > Relative {
		return fmt.Errorf("validity_format: unknown format %d", c.ValidityFormat)
	}
	if c.From != "" {
		if _, err := c.source(c.From); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	for status, outcome := range c.Outcomes {
		if status == pdu.StatusOK || outcome == provider.Accepted {
			return fmt.Errorf("outcomes: %s cannot be %v", status.Code(), outcome)
		}
	}
	return nil
}

func between(key string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %d is not between %d and %d", key, v, low, high)
	}
	return nil
}

func atLeast(key string, v, low time.Duration) error {
	if v < low {
		return fmt.Errorf("%s: %v is below %v", key, v, low)
	}
	return nil
}

// shorterThan holds the length of a C-Octet String whose NUL counts.
func shorterThan(key, v string, limit int) error {
	if len(v) >= limit || strings.ContainsRune(v, 0) {
		return fmt.Errorf("%s: is longer than %d characters or holds a NUL", key, limit-1)
	}
	return nil
}
