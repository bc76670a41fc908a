package smpp

import (
	"fmt"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/smpp/pdu"
)

// ParseSettings reads the settings of a channel as the routing document has them
// and validates the result. readFile reads the files that settings name: the
// password, the CA, the certificate. An unknown key is an error that suggests the
// nearest known one; all errors are reported together, each under its key, and none
// shows a secret.
//
//	address               "host:port", or a list of them
//	system_id             account name
//	password_file         file with the password; a final line break is dropped
//	system_type           empty unless the carrier wants one
//	interface_version     "3.3", "3.4" (default) or "5.0"
//	bind                  transceiver (default) or transmitter_receiver
//	binds                 connections held at once (1)
//	window                unanswered submits for each bind (100)
//	enquire_link          interval (30s)
//	response_timeout      until a submit without answer is Unknown (10s)
//	connect_timeout       (10s)
//	reconnect_min, reconnect_max   bounds of the back-off (500ms, 30s)
//	tls                   false (default) or true
//	tls_ca_file, tls_server_name, tls_cert_file, tls_key_file
//	from                  sender of messages that name none
//	source_ton, source_npi, dest_ton, dest_npi   0 to 255; derived unless set
//	service_type          empty unless the carrier wants one
//	registered_delivery   final (default), failure, none, or 0 to 255; final where slots wait for receipts
//	validity              of messages that name none, such as 24h
//	validity_format       absolute (default) or relative
//	alphabet              behind data_coding 0: gsm7 (default), latin1 or ascii
//	long_messages         udh8 (default), udh16, sar or message_payload
//	outcomes              {"0x00000410": rejected}: rejected, refused, throttled or unknown
func ParseSettings(values map[string]any, readFile func(string) ([]byte, error)) (Config, error) {
	r := settings.New(values, readFile)
	cfg := Config{
		Addresses:          r.Texts("address"),
		SystemID:           r.Text("system_id"),
		Password:           strings.TrimRight(string(r.File("password_file")), "\r\n"),
		SystemType:         r.Text("system_type"),
		InterfaceVersion:   settings.Choose(r, "interface_version", versions),
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
		ServiceType:        r.Text("service_type"),
		RegisteredDelivery: readReceipt(r, "registered_delivery"),
		Validity:           r.Duration("validity"),
		ValidityFormat:     settings.Choose(r, "validity_format", validityFormats),
		Alphabet:           settings.Choose(r, "alphabet", alphabets),
		LongMessages:       settings.Choose(r, "long_messages", longMessages),
		Outcomes:           readOutcomes(r, "outcomes"),
	}
	r.RefuseUnknown()
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	return cfg, cfg.Validate()
}

// The words of the settings that choose.
var (
	versions        = map[string]byte{"3.3": pdu.Version33, "3.4": pdu.Version34, "5.0": pdu.Version50}
	modes           = map[string]Mode{"transceiver": Transceiver, "transmitter_receiver": TransmitterReceiver}
	alphabets       = map[string]Alphabet{"gsm7": GSM7, "latin1": Latin1, "ascii": ASCII}
	longMessages    = map[string]LongMessages{"udh8": UDH8, "udh16": UDH16, "sar": SAR, "message_payload": MessagePayload}
	validityFormats = map[string]ValidityFormat{"absolute": Absolute, "relative": Relative}
	receipts        = map[string]byte{"none": pdu.ReceiptNone, "final": pdu.ReceiptFinal, "failure": pdu.ReceiptFailure}
)

// readReceipt takes a word or the octet itself, for the rarer bits of section 5.2.17.
// Absent, it asks for final receipts.
func readReceipt(r *settings.Reader, key string) byte {
	value, _ := r.Take(key)
	word, isText := value.(string)
	if v, known := receipts[word]; isText && known {
		return v
	}
	if v := r.Octet(key); v != nil {
		return *v
	}
	return pdu.ReceiptFinal
}

// readOutcomes reads the overrides of the status table. Keys are codes in decimal or
// hexadecimal.
func readOutcomes(r *settings.Reader, key string) map[pdu.Status]provider.Outcome {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	entries, ok := settings.Map(value)
	if !ok {
		r.Failf(key, "is no map from status to outcome")
		return nil
	}
	table := make(map[pdu.Status]provider.Outcome, len(entries))
	for code, word := range entries {
		status, err := strconv.ParseUint(code, 0, 32)
		if err != nil {
			r.Failf(key, "%q is no command_status; write it as 0x00000410", code)
			continue
		}
		outcome, err := provider.ParseOutcome(fmt.Sprint(word))
		if err != nil {
			r.Failf(key, "%s: %v", code, err)
			continue
		}
		table[pdu.Status(status)] = outcome
	}
	return table
}
