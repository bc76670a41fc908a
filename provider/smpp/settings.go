package smpp

import (
	"strings"

	"dispatcher/provider/settings"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// ParseSettings reads the settings of a channel as the routing document has them and validates the
// result. readFile reads the files that settings name: the password, the CA, the certificate. An
// unknown key is an error that suggests the nearest known one; all errors are reported together,
// each under its key, and none shows a secret.
//
//	address               "host:port", or a list of them
//	system_id             account name
//	password_file         file with the password; a final line break is dropped
//	system_type           empty unless the carrier wants one
//	interface_version     "3.3", "3.4" (default) or "5.0"
//	address_range, addr_ton, addr_npi   of the bind; empty and 0 unless the carrier wants them
//	bind                  transceiver (default) or transmitter_receiver; with 3.3 only the latter,
//	                      which is then the default
//	binds                 connections held at once (1)
//	window                unanswered submits for each bind (100)
//	enquire_link          interval (30s)
//	response_timeout      until a submit without answer is Unknown (8s, and at most 4/5 of
//	                      DISPATCHER_SEND_TIMEOUT)
//	connect_timeout       (10s)
//	reconnect_min, reconnect_max   bounds of the back-off (500ms, 30s)
//	tls                   false (default) or true
//	tls_ca_file, tls_server_name, tls_cert_file, tls_key_file
//	from                  sender of messages that name none
//	source_ton, source_npi, dest_ton, dest_npi   0 to 255; derived unless set
//	source_rules          list of {to, sender, from, ton, npi}; the first that fits counts. to:
//	                      leading digits of recipients, or a list of them; sender: alphanumeric,
//	                      short_code, number, none, a sender, or the beginning of one and "*"; from:
//	                      what goes out instead
//	dest_rules            list of {to, replace, ton, npi}: replace stands in place of the digits in
//	                      to
//	service_type          empty unless the carrier wants one
//	protocol_id           0 to 255 (0)
//	priority              priority_flag, 0 (default) to 3; 4 for SMPP 5.0
//	registered_delivery   final (default), none, or 0 to 255 for other bits; final where receipts are
//	                      waited for
//	schedule              how long the SMSC keeps each message back; absent: not at all
//	longest_validity      a longer validity is shortened to it (63 weeks)
//	validity_format       absolute (default) or relative; also applies to schedule
//	alphabet              behind data_coding 0: gsm7 (default), latin1 or ascii
//	shift_locking, shift_single   national tables that may be used, such as [turkish, portuguese];
//	                              none unless set
//	default_coding, ucs2_coding   data_coding of texts in alphabet (0) and in UCS-2 (8)
//	message_class         0 (shown at once) to 3; written into data_coding
//	long_messages         udh8 (default), udh16, sar or message_payload
//	tlvs                  {"0x1400": {text: acme}}: optional parameters of every submit; text,
//	                      cstring, hex, uint8, uint16 or uint32
//	key_tlv               parameter that carries our reference of the submission: 0x0204 for 16 bits
//	                      of it in user_message_reference, another for the whole
//	receipt_key_tlv       parameter in which receipts return it whole
//	unknown_ton           international (default) or national: what long numbers of subscribers are
//	                      whose type is unknown
//	receipt_id            as_is (default), hex_to_decimal or decimal_to_hex: converts the id of a
//	                      receipt to that of submit_sm_resp
//	receipt_id_width      digits with leading zeros; absent: as they come
//	receipt_id_case       lower or upper; absent: as it comes
//	receipt_id_from       any (default), text or parameter (receipted_message_id)
//	receipt_meanings      {"UNDELIV/012": absent}: pending, delivered, undelivered, or a cause, for a
//	                      word, an error such as "/012", or both
//	receipt_errors        own (default) or gsm: err in the text of receipts is a MAP error
//	untyped_receipts      false (default) or true: receipts are recognised by their text if esm_class
//	                      says nothing
//	congestion            ignore (default) or honor: congestion_state narrows the window
//	cancel                false (default) or true: the SMSC supports cancel_sm. The accepted parts of
//	                      a message are then cancelled after another part was rejected
//	query_after           sends query_sm for messages that have had no final receipt for that long;
//	                      absent: never
//	query_rate            such queries a second at most (10)
//	outcomes              {"0x00000410": rejected}: rejected, refused, unfit (refused, and no fault
//	                      of the channel), throttled or unknown
func ParseSettings(values map[string]any, readFile func(string) ([]byte, error)) (Config, error) {
	r := settings.New(values, readFile)
	cfg := Config{
		Addresses:        r.Texts("address"),
		SystemID:         r.Text("system_id"),
		Password:         strings.TrimRight(string(r.File("password_file")), "\r\n"),
		SystemType:       r.Text("system_type"),
		InterfaceVersion: settings.Choose(r, "interface_version", versions),
		AddressRange: pdu.Address{
			TON: octet(r, "addr_ton"), NPI: octet(r, "addr_npi"), Addr: r.Text("address_range"),
		},
		Bind:               settings.Choose(r, "bind", modes),
		Binds:              r.Integer("binds", 1, maxBinds),
		Window:             r.Integer("window", 1, maxWindow),
		EnquireLink:        r.Duration("enquire_link"),
		ResponseTimeout:    r.Duration("response_timeout"),
		ConnectTimeout:     r.Duration("connect_timeout"),
		ReconnectMin:       r.Duration("reconnect_min"),
		ReconnectMax:       r.Duration("reconnect_max"),
		TLS:                r.TLS(),
		From:               r.Text("from"),
		SourceTON:          r.Octet("source_ton"),
		SourceNPI:          r.Octet("source_npi"),
		DestTON:            r.Octet("dest_ton"),
		DestNPI:            r.Octet("dest_npi"),
		SourceRules:        readSourceRules(r, "source_rules"),
		DestRules:          readDestRules(r, "dest_rules"),
		ServiceType:        r.Text("service_type"),
		ProtocolID:         octet(r, "protocol_id"),
		Priority:           byte(r.Integer("priority", 0, maxPriority)),
		RegisteredDelivery: readReceipt(r, "registered_delivery"),
		Schedule:           r.Duration("schedule"),
		LongestValidity:    r.Duration("longest_validity"),
		ValidityFormat:     settings.Choose(r, "validity_format", validityFormats),
		Alphabet:           settings.Choose(r, "alphabet", alphabets),
		Tables: sms.Tables{
			Locking: readLanguages(r, "shift_locking"), Single: readLanguages(r, "shift_single"),
		},
		DefaultCoding:   r.Octet("default_coding"),
		UCS2Coding:      r.Octet("ucs2_coding"),
		MessageClass:    r.Octet("message_class"),
		LongMessages:    settings.Choose(r, "long_messages", longMessages),
		TLVs:            readTLVs(r, "tlvs"),
		KeyTLV:          readTag(r, "key_tlv"),
		ReceiptKeyTLV:   readTag(r, "receipt_key_tlv"),
		NationalUnknown: settings.Choose(r, "unknown_ton", unknownTONs),
		ReceiptID: ReceiptID{
			From:  settings.Choose(r, "receipt_id_from", idSources),
			Form:  settings.Choose(r, "receipt_id", idForms),
			Case:  settings.Choose(r, "receipt_id_case", idCases),
			Width: r.Integer("receipt_id_width", 1, maxReference),
		},
		ReceiptMeanings: readMeanings(r, "receipt_meanings"),
		GSMErrors:       settings.Choose(r, "receipt_errors", receiptErrors),
		UntypedReceipts: r.Flag("untyped_receipts"),
		HonorCongestion: settings.Choose(r, "congestion", congestions),
		Cancel:          r.Flag("cancel"),
		QueryAfter:      r.Duration("query_after"),
		QueryRate:       r.Integer("query_rate", 1, maxRate),
		Outcomes:        readOutcomes(r, "outcomes"),
	}
	if values["bind"] == nil && cfg.InterfaceVersion == pdu.Version33 {
		cfg.Bind = TransmitterReceiver
	}
	_, _ = r.Take(IgnoredValidity)
	r.RefuseUnknown()
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	return cfg, cfg.Validate()
}

// IgnoredValidity is a setting of older documents. It applied to messages that never expire, and
// there are none.
const IgnoredValidity = "validity"

// The words of settings that offer a choice.
var (
	versions = map[string]byte{
		"3.3": pdu.Version33, "3.4": pdu.Version34, "5.0": pdu.Version50,
	}
	modes = map[string]Mode{
		"transceiver": Transceiver, "transmitter_receiver": TransmitterReceiver,
	}
	alphabets    = map[string]Alphabet{"gsm7": GSM7, "latin1": Latin1, "ascii": ASCII}
	longMessages = map[string]LongMessages{
		"udh8": UDH8, "udh16": UDH16, "sar": SAR, "message_payload": MessagePayload,
	}
	validityFormats = map[string]ValidityFormat{"absolute": Absolute, "relative": Relative}
	idForms         = map[string]IDForm{
		"as_is": AsIs, "hex_to_decimal": HexToDecimal, "decimal_to_hex": DecimalToHex,
	}
	idCases       = map[string]IDCase{"lower": LowerCase, "upper": UpperCase}
	idSources     = map[string]IDSource{"any": AnyID, "text": TextID, "parameter": ParameterID}
	unknownTONs   = map[string]bool{"international": false, "national": true}
	receiptErrors = map[string]bool{"own": false, "gsm": true}
	congestions   = map[string]bool{"ignore": false, "honor": true}
	receipts      = map[string]byte{"none": pdu.ReceiptNone, "final": pdu.ReceiptFinal}
)

// readReceipt takes a word or the octet itself, for the rarer bits of section 5.2.17. Absent, it
// asks for final receipts. Receipts of failures alone, or of successes alone (5.0), are refused: a
// lost receipt would look like a message that gets none.
func readReceipt(r *settings.Reader, key string) byte {
	value, _ := r.Take(key)
	word, isText := value.(string)
	if v, known := receipts[word]; isText && known {
		return v
	}
	v := pdu.ReceiptFailure
	if word != "failure" {
		octet := r.Octet(key)
		if octet == nil {
			return pdu.ReceiptFinal
		}
		v = *octet
	}
	if v&pdu.ReceiptMask > pdu.ReceiptFinal {
		r.Failf(
			key, "asks for some of the final receipts, and a message without one would mean nothing; "+
				"write final or none")
	}
	return v
}
