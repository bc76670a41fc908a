package smpp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dispatcher/provider"
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
func ParseSettings(settings map[string]any, readFile func(string) ([]byte, error)) (Config, error) {
	r := settingsReader{settings: settings, readFile: readFile}
	cfg := Config{
		Addresses:          r.texts("address"),
		SystemID:           r.text("system_id"),
		Password:           strings.TrimRight(string(r.file("password_file")), "\r\n"),
		SystemType:         r.text("system_type"),
		InterfaceVersion:   choose(&r, "interface_version", versions),
		Bind:               choose(&r, "bind", modes),
		Binds:              r.integer("binds", 1, maxBinds),
		Window:             r.integer("window", 1, maxWindow),
		EnquireLink:        r.duration("enquire_link"),
		ResponseTimeout:    r.duration("response_timeout"),
		ConnectTimeout:     r.duration("connect_timeout"),
		ReconnectMin:       r.duration("reconnect_min"),
		ReconnectMax:       r.duration("reconnect_max"),
		TLS:                r.tls(),
		From:               r.text("from"),
		SourceTON:          r.octet("source_ton"),
		SourceNPI:          r.octet("source_npi"),
		DestTON:            r.octet("dest_ton"),
		DestNPI:            r.octet("dest_npi"),
		ServiceType:        r.text("service_type"),
		RegisteredDelivery: r.receipt("registered_delivery"),
		Validity:           r.duration("validity"),
		ValidityFormat:     choose(&r, "validity_format", validityFormats),
		Alphabet:           choose(&r, "alphabet", alphabets),
		LongMessages:       choose(&r, "long_messages", longMessages),
		Outcomes:           r.outcomes("outcomes"),
	}
	r.refuseUnknown()
	if err := r.err(); err != nil {
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

// choose reads a setting whose value is one of a few words; absent, it is the zero value.
func choose[T any](r *settingsReader, key string, words map[string]T) T {
	var zero T
	value, ok := r.take(key)
	if !ok {
		return zero
	}
	word := strings.TrimSpace(fmt.Sprint(value))
	if f, isFloat := value.(float64); isFloat {
		word = strconv.FormatFloat(f, 'f', 1, 64) // 5.0 without quotes
	}
	if v, known := words[word]; known {
		return v
	}
	r.failf(key, "%q is none of %s", word, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
	return zero
}

// receipt takes a word or the octet itself, for the rarer bits of section 5.2.17.
// Absent, it asks for final receipts.
func (r *settingsReader) receipt(key string) byte {
	word, isText := r.settings[key].(string)
	if v, known := receipts[word]; isText && known {
		r.take(key)
		return v
	}
	if v := r.octet(key); v != nil {
		return *v
	}
	return pdu.ReceiptFinal
}

// outcomes reads the overrides of the status table. Keys are codes in decimal or
// hexadecimal.
func (r *settingsReader) outcomes(key string) map[pdu.Status]provider.Outcome {
	value, ok := r.take(key)
	if !ok {
		return nil
	}
	entries, ok := asMap(value)
	if !ok {
		r.failf(key, "is no map from status to outcome")
		return nil
	}
	table := make(map[pdu.Status]provider.Outcome, len(entries))
	for code, word := range entries {
		status, err := strconv.ParseUint(code, 0, 32)
		if err != nil {
			r.failf(key, "%q is no command_status; write it as 0x00000410", code)
			continue
		}
		outcome, err := provider.ParseOutcome(fmt.Sprint(word))
		if err != nil {
			r.failf(key, "%s: %v", code, err)
			continue
		}
		table[pdu.Status(status)] = outcome
	}
	return table
}

// tls reads all tls_* settings. It returns nil when tls is off.
func (r *settingsReader) tls() *tls.Config {
	on := r.flag("tls")
	ca, cert, key, name := r.file("tls_ca_file"), r.file("tls_cert_file"), r.file("tls_key_file"), r.text("tls_server_name")
	if !on {
		if ca != nil || cert != nil || key != nil || name != "" {
			r.failf("tls", "is off while other tls_ settings are set")
		}
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			r.failf("tls_ca_file", "holds no PEM certificate")
		}
	}
	if cert == nil && key == nil {
		return cfg
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.fail("tls_cert_file", errors.New("is no PEM certificate that belongs to tls_key_file"))
		return cfg
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}
