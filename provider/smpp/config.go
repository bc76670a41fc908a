package smpp

import (
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
	// claim: a bind that does not answer is to be noticed before its senders go.
	DefaultResponseTimeout = 8 * time.Second
	DefaultConnectTimeout  = 10 * time.Second
	DefaultQueryRate       = 10
	DefaultReconnectMin    = 500 * time.Millisecond
	DefaultReconnectMax    = 30 * time.Second
	// DefaultLongestValidity is the longest that an SMSC can express towards the network (3GPP TS
	// 23.040 section 9.2.3.12.1).
	DefaultLongestValidity = 63 * 7 * 24 * time.Hour
)

const (
	maxBinds    = 64
	maxWindow   = 10_000
	maxPriority = 4
	maxRate     = 1000
	maxClass    = 3
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
	// Kind of provider, as the routing document names it: a text that was begun on one kind of
	// channel is not finished on another. "smpp" unless set.
	Kind string
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
	// AddressRange with its type says which of the account's addresses the binds are for (section
	// 5.2.7); most SMSCs go by the account.
	AddressRange pdu.Address
	Bind         Mode

	Binds  int // how many connections (or pairs) are held; 1 unless set
	Window int // unanswered submit_sm that each bind may have; DefaultWindow unless set

	EnquireLink     time.Duration // between two enquire_link
	ResponseTimeout time.Duration // until an unanswered request is given up
	ConnectTimeout  time.Duration // for the dial and the TLS handshake
	ReconnectMin    time.Duration // the shortest pause between two connections
	ReconnectMax    time.Duration // the longest
	// SendTimeout is how long the contexts of Send last, where that is known.
	SendTimeout time.Duration
	// SubmitTimeout is until an unanswered submit is given up: ResponseTimeout where that is set,
	// else four fifths of SendTimeout, at most DefaultResponseTimeout.
	SubmitTimeout time.Duration

	From                                   string // sender of messages that name none
	SourceTON, SourceNPI, DestTON, DestNPI *byte  // nil derives them from the address
	SourceRules                            []SourceRule
	DestRules                              []DestRule

	ServiceType        string
	ProtocolID         byte
	Priority           byte // priority_flag, 0 (bulk) to 3 (very urgent); 4 is of SMPP 5.0
	RegisteredDelivery byte // pdu.ReceiptNone, ReceiptFinal, ...
	// Schedule is how long the SMSC keeps every message back; zero sends at once.
	Schedule        time.Duration
	Validity        time.Duration // of messages that name none; zero leaves it to the SMSC
	LongestValidity time.Duration // DefaultLongestValidity unless set; longer ones are shortened
	ValidityFormat  ValidityFormat
	Alphabet        Alphabet
	LongMessages    LongMessages
	// Tables are the national tables that the SMSC and its handsets take. They are used where they
	// make fewer segments; a text in them travels with a header of ours also where LongMessages
	// says SAR or MessagePayload.
	Tables sms.Tables
	// DefaultCoding and UCS2Coding are written as data_coding of texts in Alphabet and in UCS-2;
	// nil is 0 and 8. MessageClass, 0 to 3, writes the codings with that class; class 0 is shown at
	// once.
	DefaultCoding, UCS2Coding, MessageClass *byte
	// TLVs go out with every submit_sm.
	TLVs pdu.TLVs
	// KeyTLV, if not zero, is the parameter in which Submission.Key goes out, as a C-Octet String;
	// pdu.TagUserMessageRef takes its first 16 bits. ReceiptKeyTLV is the one in which receipts
	// return it.
	KeyTLV, ReceiptKeyTLV pdu.Tag

	ReceiptID ReceiptID
	// ReceiptMeanings overrides what receipts mean, for carriers with words and errors of their
	// own.
	ReceiptMeanings ReceiptMeanings
	// GSMErrors reads err in the text of a receipt as a MAP error, see causeOfMAP.
	GSMErrors bool
	// UntypedReceipts reads a deliver_sm of default esm_class as a receipt when its text has every
	// key of appendix B that a receipt needs. Whoever can send a message to this account can forge
	// one then.
	UntypedReceipts bool
	// HonorCongestion lets congestion_state of an SMPP 5.0 peer narrow the window.
	HonorCongestion bool
	// Query and Cancel say that the SMSC answers query_sm and cancel_sm. With Cancel, Send takes
	// the parts of a message back that were accepted before another was rejected.
	Query, Cancel bool
	// QueryAfter, if not zero, asks with query_sm for the fate of what has had no final receipt for
	// so long: at most QueryRate times a second (DefaultQueryRate unless set), one at a time, and
	// only while a window has room.
	QueryAfter time.Duration
	QueryRate  int

	// Outcomes overrides what a command_status means, for the codes that a vendor
	// defines or uses in his own way, whoever the sender is. Accepted is not allowed.
	Outcomes map[pdu.Status]StatusMeaning

	// OnState, if set, hears of every change of a bind, loud failures included, one at a time for
	// each bind. It must not block.
	OnState func(State)
	// OnReceipt, if set, gets every receipt, also one that names no message, and must not block: it
	// calls answer, now or later and from any goroutine, once the receipt is in safe hands (taken)
	// or cannot be brought there. Until then the SMSC gets no response. One that was not taken is
	// answered pdu.StatusReceiverTemporary, so that the SMSC sends it again; one without answer
	// counts against the 10 000 that a bind may have. Only the first call of answer counts, it does
	// not block, and it does nothing when the connection has ended: the SMSC sends what has no
	// response again. OnReceipt is called from several goroutines. Setting it makes every submit
	// ask for the final receipt, whatever RegisteredDelivery says.
	OnReceipt func(r provider.Receipt, answer func(taken bool))
	// OnLate, if set, hears that a submit was taken after all which had been given up: a late
	// submit_sm_resp, as a Pending receipt under Submission.Key with the SMSC's id. Nobody sends
	// that again. It must not block. A submit is remembered as long as its connection lasts, unless
	// 10 000 later ones were given up.
	OnLate func(provider.Receipt)
	// OnInbound, if set, gets every message of a subscriber, in order for each bind, and reports
	// whether it is in safe hands. It may wait until it is: answers to submits do not wait for it.
	// One that was not taken is answered pdu.StatusReceiverTemporary, as is one that finds too many
	// before it.
	OnInbound func(provider.Inbound) (taken bool)
	// OnDeliver, if set, gets every deliver_sm and data_sm that those two do not, in order for each
	// bind, and returns the status that the SMSC is answered: pdu.StatusOK when the content is in
	// safe hands, pdu.StatusReceiverTemporary to get it again later. ctx ends with the connection.
	// Without it everything is answered pdu.StatusOK.
	OnDeliver func(ctx context.Context, d pdu.DeliverSM) pdu.Status
	// Dial replaces the TCP dial in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	orElse(&c.InterfaceVersion, pdu.Version34)
	orElse(&c.Binds, 1)
	orElse(&c.Window, DefaultWindow)
	orElse(&c.EnquireLink, DefaultEnquireLink)
	orElse(&c.SubmitTimeout, c.ResponseTimeout)
	orElse(&c.SubmitTimeout, defaultSubmitTimeout(c.SendTimeout))
	orElse(&c.ResponseTimeout, DefaultResponseTimeout)
	orElse(&c.ConnectTimeout, DefaultConnectTimeout)
	orElse(&c.ReconnectMin, DefaultReconnectMin)
	orElse(&c.ReconnectMax, max(DefaultReconnectMax, c.ReconnectMin))
	orElse(&c.LongestValidity, DefaultLongestValidity)
	if c.OnReceipt != nil {
		c.RegisteredDelivery = c.RegisteredDelivery&^pdu.ReceiptMask | pdu.ReceiptFinal
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

// defaultSubmitTimeout is over before whoever sends with that timeout has gone, zero for an unknown
// one. Binds and enquire_link have nothing to do with that: however short it is, the SMSC has its
// time for them.
func defaultSubmitTimeout(sendTimeout time.Duration) time.Duration {
	if sendTimeout == 0 {
		return DefaultResponseTimeout
	}
	return min(DefaultResponseTimeout, sendTimeout*4/5)
}

func orElse[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}
