package smpp

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// Defaults of the settings that have one.
const (
	DefaultWindow      = 100
	DefaultEnquireLink = 30 * time.Second
	// DefaultResponseTimeout is below the default of DISPATCHER_SEND_TIMEOUT, which counts from the
	// claim: a bind that does not answer must be noticed before its senders give up.
	DefaultResponseTimeout = 8 * time.Second
	DefaultConnectTimeout  = 10 * time.Second
	DefaultQueryRate       = 10
	DefaultReconnectMin    = 500 * time.Millisecond
	DefaultReconnectMax    = 30 * time.Second
	// DefaultLongestValidity is the longest validity that an SMSC can pass on to the network (3GPP
	// TS 23.040 section 9.2.3.12.1).
	DefaultLongestValidity = 63 * 7 * 24 * time.Hour
)

const (
	maxBinds    = 64
	maxWindow   = 10_000
	maxPriority = 4
	maxRate     = 1000
	maxClass    = 3
)

// Mode is the kind of binds that a channel uses.
type Mode uint8

const (
	// Transceiver uses one connection for both directions.
	Transceiver Mode = iota
	// TransmitterReceiver uses a pair of connections, one for each direction.
	TransmitterReceiver
)

// Alphabet is the meaning of data_coding 0. The standard leaves it to the SMSC (section 5.2.19), so
// it is a setting of the channel.
type Alphabet uint8

const (
	// GSM7 is the GSM default alphabet, one septet in each octet.
	GSM7 Alphabet = iota
	// Latin1 is ISO 8859-1.
	Latin1
	// ASCII is 7-bit ASCII.
	ASCII
)

// LongMessages is how a text of more than one segment is sent.
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
	// Absolute is a time in UTC.
	Absolute ValidityFormat = iota
	// Relative is a period that counts from the arrival at the SMSC.
	Relative
)

// Config describes one channel. ParseSettings documents the keys of the routing document that fill
// it. The zero value of an optional field means its default.
type Config struct {
	// Kind of provider, as named in the routing document; "smpp" unless set. It is part of Result.Cut,
	// so a channel of another kind does not send the rest of a text.
	Kind string
	// Addresses are host:port pairs, tried in turn. Each bind starts with a different one.
	Addresses []string
	// TLS encrypts the connections; nil means plain TCP. An empty ServerName means the host of the
	// address.
	TLS *tls.Config

	SystemID         string
	Password         string
	SystemType       string
	InterfaceVersion byte // pdu.Version34 unless set
	// AddressRange and its type say which addresses of the account the binds serve (section 5.2.7).
	// Most SMSCs ignore it and use the account.
	AddressRange pdu.Address
	Bind         Mode

	Binds  int // how many connections (or pairs) are held; 1 unless set
	Window int // unanswered submit_sm that each bind may have; DefaultWindow unless set

	EnquireLink     time.Duration // between two enquire_link
	ResponseTimeout time.Duration // until an unanswered request is given up
	ConnectTimeout  time.Duration // for the dial and the TLS handshake
	ReconnectMin    time.Duration // the shortest pause between two connections
	ReconnectMax    time.Duration // the longest
	// SendTimeout is the timeout of Send's contexts; zero if unknown.
	SendTimeout time.Duration
	// SubmitTimeout is how long a submit waits for its answer: ResponseTimeout if that is set, else
	// four fifths of SendTimeout, at most DefaultResponseTimeout.
	SubmitTimeout time.Duration

	From                                   string // sender of messages that name none
	SourceTON, SourceNPI, DestTON, DestNPI *byte  // nil derives them from the address
	SourceRules                            []SourceRule
	DestRules                              []DestRule

	ServiceType        string
	ProtocolID         byte
	Priority           byte // priority_flag, 0 (bulk) to 3 (very urgent); SMPP 5.0 adds 4
	RegisteredDelivery byte // pdu.ReceiptNone, ReceiptFinal, ...
	// Schedule is how long the SMSC delays every message; zero sends at once.
	Schedule        time.Duration
	LongestValidity time.Duration // DefaultLongestValidity unless set; longer ones are shortened
	ValidityFormat  ValidityFormat
	Alphabet        Alphabet
	LongMessages    LongMessages
	// Tables are the national tables that the SMSC and its handsets support. They are used where
	// they save segments. A text in them is sent with our own header, also where LongMessages is
	// SAR or MessagePayload.
	Tables sms.Tables
	// DefaultCoding and UCS2Coding are the data_coding of texts in Alphabet and in UCS-2; nil means
	// 0 and 8. MessageClass, 0 to 3, is written into the coding; class 0 is shown at once.
	DefaultCoding, UCS2Coding, MessageClass *byte
	// TLVs are sent with every submit_sm.
	TLVs pdu.TLVs
	// KeyTLV, if not zero, is the parameter that carries Submission.Key, as a C-Octet String;
	// pdu.TagUserMessageRef carries its first 16 bits. Receipts return the key in ReceiptKeyTLV.
	KeyTLV, ReceiptKeyTLV pdu.Tag

	// NationalUnknown says that subscribers' numbers of type unknown have no country code.
	NationalUnknown bool

	ReceiptID ReceiptID
	// ReceiptMeanings overrides what receipts mean, for carriers with their own states and errors.
	ReceiptMeanings ReceiptMeanings
	// GSMErrors reads err in the text of a receipt as a MAP error, see causeOfMAP.
	GSMErrors bool
	// UntypedReceipts accepts a deliver_sm with default esm_class as a receipt if its text has the
	// keys of appendix B that a receipt needs. Anybody who can send a message to this account can
	// then forge a receipt.
	UntypedReceipts bool
	// HonorCongestion narrows the window by the congestion_state of an SMPP 5.0 peer.
	HonorCongestion bool
	// Cancel says that the SMSC supports cancel_sm. Send then cancels the accepted parts of a message
	// after another part was rejected.
	Cancel bool
	// QueryAfter, if not zero, sends query_sm for messages that have had no final receipt for that
	// long: one at a time, at most QueryRate per second (DefaultQueryRate unless set), and only
	// while a window has a free slot.
	QueryAfter time.Duration
	QueryRate  int
	// Reported, if set, returns which of about 500 references have their final receipt. They are not
	// queried: an SMSC may send a receipt over the bind of another process. After an error it is
	// called again.
	Reported func(ctx context.Context, references []string) ([]string, error)

	// Outcomes overrides the meaning of a command_status, for codes that a vendor defines or uses
	// differently, regardless of the sender. Accepted is not allowed.
	Outcomes map[pdu.Status]StatusMeaning

	// OnState, if set, is called on every state change of a bind, with its error, one call at a
	// time per bind. It must not block.
	OnState func(BindState)
	// OnReceipt, if set, is called with every receipt, also with one that names no message, from
	// several goroutines. It must not block. It calls answer once, now or later, from any
	// goroutine: taken means that the receipt is stored. The SMSC gets its response then: success
	// if taken, else pdu.StatusReceiverTemporary, so that it sends the receipt again. A receipt
	// without an answer counts against the 10 000 that a bind may have open. Only the first call of
	// answer counts; it does not block, and has no effect after the connection ended, because the
	// SMSC repeats what was not answered. Setting OnReceipt makes every submit ask for the final
	// receipt, whatever RegisteredDelivery says.
	OnReceipt func(r provider.Receipt, answer func(taken bool))
	// OnLate, if set, is called when a late submit_sm_resp accepts a submit that had timed out. It
	// gets a Pending receipt under Submission.Key with the SMSC's id. The SMSC does not repeat it.
	// OnLate must not block. The last 10 000 timed-out submits of a connection are remembered.
	OnLate func(provider.Receipt)
	// OnInbound, if set, is called with every message of a subscriber, in order per bind, and
	// reports whether the message is stored. It may block: answers to submits do not wait for it. A
	// message that is not taken, or finds the queue full, is answered pdu.StatusReceiverTemporary.
	OnInbound func(provider.Inbound) (taken bool)
	// OnDeliver, if set, is called with every other deliver_sm and data_sm, in order per bind, and
	// returns the status for the response: pdu.StatusOK when the content is stored,
	// pdu.StatusReceiverTemporary to get it again later. ctx ends with the connection. Without
	// OnDeliver everything is answered pdu.StatusOK.
	OnDeliver func(ctx context.Context, d pdu.DeliverSM) pdu.Status
	// Dial replaces the TCP dial in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	c.InterfaceVersion = cmp.Or(c.InterfaceVersion, pdu.Version34)
	c.Binds = cmp.Or(c.Binds, 1)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.EnquireLink = cmp.Or(c.EnquireLink, DefaultEnquireLink)
	c.SubmitTimeout = cmp.Or(c.SubmitTimeout, c.ResponseTimeout)
	c.SubmitTimeout = cmp.Or(c.SubmitTimeout, defaultSubmitTimeout(c.SendTimeout))
	c.ResponseTimeout = cmp.Or(c.ResponseTimeout, DefaultResponseTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.ReconnectMin = cmp.Or(c.ReconnectMin, DefaultReconnectMin)
	c.ReconnectMax = cmp.Or(c.ReconnectMax, max(DefaultReconnectMax, c.ReconnectMin))
	c.LongestValidity = cmp.Or(c.LongestValidity, DefaultLongestValidity)
	if c.OnReceipt != nil {
		c.RegisteredDelivery = c.RegisteredDelivery&^pdu.ReceiptMask | pdu.ReceiptFinal
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

// defaultSubmitTimeout ends before a sender with that timeout gives up; zero means an unknown
// timeout. Binds and enquire_link do not depend on it: they keep the full response timeout.
func defaultSubmitTimeout(sendTimeout time.Duration) time.Duration {
	if sendTimeout == 0 {
		return DefaultResponseTimeout
	}
	return min(DefaultResponseTimeout, sendTimeout*4/5)
}
