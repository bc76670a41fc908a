package smpp

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// files returns a readFile over a map.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if content, ok := m[path]; ok {
			return []byte(content), nil
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
}

func parse(t *testing.T, settings map[string]any) (Config, error) {
	t.Helper()
	return ParseSettings(settings, files(map[string]string{"a.secret": "s3cret\n", "empty": ""}))
}

func TestSettingsOfTheExampleAreEnough(t *testing.T) {
	t.Parallel()
	cfg, err := parse(t, map[string]any{
		"address": "127.0.0.1:2775", "system_id": "acme", "password_file": "a.secret",
		"window": 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addresses: []string{"127.0.0.1:2775"}, SystemID: "acme", Password: "s3cret", Window: 100,
		RegisteredDelivery: pdu.ReceiptFinal,
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreUnexported(tls.Config{})); diff != "" {
		t.Error(diff)
	}
	full := cfg.withDefaults()
	if full.EnquireLink != 30*time.Second || full.ResponseTimeout != 8*time.Second ||
		full.Binds != 1 || full.InterfaceVersion != 0x34 {
		t.Errorf("defaults %+v", full)
	}
}

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := parse(t, map[string]any{
		"address": []any{"one:2775", "two:2775"}, "system_id": "acme", "password_file": "a.secret",
		"system_type":       "OTP",
		"interface_version": 5.0, "bind": "transmitter_receiver", "binds": 3, "window": uint64(7),
		"enquire_link":     "15s",
		"response_timeout": "4s", "connect_timeout": "3s", "reconnect_min": "1s",
		"reconnect_max": "1m", "tls": "on",
		"tls_server_name": "smsc.example", "from": 12345, "source_ton": 5, "source_npi": 0,
		"dest_ton": "2", "dest_npi": 8.0,
		"address_range": "^44", "addr_ton": 1, "addr_npi": 1,
		"service_type": "CMT", "registered_delivery": "none", "validity": "24h",
		"validity_format": "relative",
		"alphabet":        "latin1", "long_messages": "sar",
		"outcomes": map[string]any{
			"0x00000410": "rejected", "69": "throttled", "0x00000411": "unfit", "10": "refused",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addresses: []string{"one:2775", "two:2775"}, SystemID: "acme", Password: "s3cret",
		SystemType:       "OTP",
		AddressRange:     pdu.Address{TON: 1, NPI: 1, Addr: "^44"},
		InterfaceVersion: pdu.Version50, Bind: TransmitterReceiver, Binds: 3, Window: 7,
		EnquireLink:     15 * time.Second,
		ResponseTimeout: 4 * time.Second, ConnectTimeout: 3 * time.Second,
		ReconnectMin: time.Second, ReconnectMax: time.Minute,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "smsc.example"}, From: "12345",
		SourceTON: new(byte(5)), SourceNPI: new(byte(0)), DestTON: new(byte(2)),
		DestNPI: new(byte(8)), ServiceType: "CMT",
		RegisteredDelivery: pdu.ReceiptNone, ValidityFormat: Relative,
		Alphabet: Latin1, LongMessages: SAR,
		Outcomes: map[pdu.Status]StatusMeaning{
			0x410:                {Outcome: provider.Rejected},
			pdu.StatusSubmitFail: {Outcome: provider.Throttled},
			0x411:                {Outcome: provider.Refused, Unfit: true},
			pdu.StatusInvSrcAdr:  {Outcome: provider.Refused},
		},
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreUnexported(tls.Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestEverySettingOfSubmitsAndReceiptsIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := parse(t, map[string]any{
		"address": "one:2775", "system_id": "acme", "password_file": "a.secret",
		"source_rules": []any{
			map[string]any{
				"to": "+44", "sender": "alphanumeric", "from": "AcmeUK", "ton": 5, "npi": 0,
			},
			map[any]any{"to": []any{1, "52"}, "sender": "Acme*"},
			map[string]any{"sender": "none", "from": 60777},
		},
		"dest_rules":  []any{map[string]any{"to": 44, "replace": "0", "ton": 2}},
		"protocol_id": 64, "priority": 3, "schedule": "10m", "longest_validity": "72h",
		"message_class": 0,
		"shift_locking": "turkish", "shift_single": []any{"turkish", "spanish"},
		"tlvs": map[any]any{
			0x1401: map[string]any{"uint16": 258}, "0x1400": map[string]any{"text": "acme"},
			"0x1402": map[string]any{"hex": "00ff"},
			"0x1403": map[string]any{"uint8": 7}, "0x1404": map[string]any{"uint32": 1},
			"0x1405": map[string]any{"cstring": "x"},
		},
		"key_tlv": "0x1500", "receipt_key_tlv": 0x1501, "receipt_id": "decimal_to_hex",
		"receipt_id_width": 8, "receipt_id_case": "upper",
		"receipt_id_from": "text",
		"receipt_meanings": map[string]any{
			"undeliv/012": "absent", "ACCEPTD": "delivered", "/099": "pending",
		},
		"unknown_ton": "national", "receipt_errors": "gsm", "untyped_receipts": true, "congestion": "honor",
		"cancel": "on", "query_after": "1h", "query_rate": 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	replace := "0"
	want := Config{
		Addresses: []string{"one:2775"}, SystemID: "acme", Password: "s3cret",
		RegisteredDelivery: pdu.ReceiptFinal,
		SourceRules: []SourceRule{
			{
				To: []string{"44"}, Kind: Alphanumeric, From: "AcmeUK", TON: new(byte(5)),
				NPI: new(byte(0)),
			},
			{To: []string{"1", "52"}, Kind: NamedSender, Sender: "Acme*"},
			{Kind: NoSender, From: "60777"},
		},
		DestRules:  []DestRule{{To: []string{"44"}, Replace: &replace, TON: new(byte(2))}},
		ProtocolID: 64, Priority: 3, Schedule: 10 * time.Minute, LongestValidity: 72 * time.Hour,
		MessageClass: new(byte(0)),
		Tables: sms.Tables{
			Locking: sms.LanguagesOf(sms.Turkish),
			Single:  sms.LanguagesOf(sms.Turkish, sms.Spanish),
		},
		TLVs: pdu.TLVs{
			{Tag: 0x1400, Value: []byte("acme")},
			pdu.Uint16(0x1401, 258),
			{Tag: 0x1402, Value: []byte{0, 0xFF}},
			pdu.Uint8(0x1403, 7),
			{Tag: 0x1404, Value: []byte{0, 0, 0, 1}},
			pdu.CString(0x1405, "x"),
		},
		KeyTLV: 0x1500, ReceiptKeyTLV: 0x1501,
		ReceiptID: ReceiptID{From: TextID, Form: DecimalToHex, Case: UpperCase, Width: 8},
		ReceiptMeanings: ReceiptMeanings{
			"UNDELIV/012": {provider.Undelivered, provider.Absent},
			"ACCEPTD":     {State: provider.Delivered}, "/099": {State: provider.Pending},
		},
		NationalUnknown: true, GSMErrors: true, UntypedReceipts: true, HonorCongestion: true, Cancel: true,
		QueryAfter: time.Hour, QueryRate: 3,
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
	cfg, err = parse(t, map[string]any{
		"address": "h:1", "system_id": "a", "default_coding": 1, "ucs2_coding": 25,
		"key_tlv": pdu.TagUserMessageRef, "receipt_id_case": "lower",
	})
	if err != nil || *cfg.DefaultCoding != 1 || *cfg.UCS2Coding != 25 ||
		cfg.KeyTLV != pdu.TagUserMessageRef || cfg.ReceiptID.Case != LowerCase {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// TestAVersionHasItsOwnKindOfBind unless the settings choose one.
func TestAVersionHasItsOwnKindOfBind(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]Mode{
		"3.3": TransmitterReceiver, "3.4": Transceiver, "5.0": Transceiver,
	} {
		cfg, err := parse(
			t, map[string]any{"address": "h:1", "system_id": "a", "interface_version": version})
		if err != nil || cfg.Bind != want {
			t.Errorf("%s: %v, %v", version, cfg.Bind, err)
		}
		if cfg, err = parse(t, map[string]any{
			"address": "h:1", "system_id": "a", "interface_version": version,
			"bind": "transmitter_receiver",
		}); err != nil || cfg.Bind != TransmitterReceiver {
			t.Errorf("%s, chosen: %v, %v", version, cfg.Bind, err)
		}
	}
}

func TestBadSettingsAreRefusedUnderTheirKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"misspelt": {"widnow", 5, "widnow: unknown setting; did you mean window?"},
		"misspelt long": {
			"enquire_link_interval", "5s", "enquire_link_interval: unknown setting",
		},
		"strange":            {"colour", "red", "known are addr_npi, addr_ton, address,"},
		"inline password":    {"password", "s3cret", "password_file"},
		"window of zero":     {"window", 0, "window: 0 is not between 1 and 10000"},
		"window as text":     {"window", "many", "window: is not a whole number"},
		"fraction of a bind": {"binds", 1.5, "binds: is not a whole number"},
		"too many binds":     {"binds", 65, "binds: 65 is not between 1 and 64"},
		"duration as number": {
			"enquire_link", 30, "enquire_link: is not a positive duration such as 30s",
		},
		"negative duration": {
			"response_timeout", "-1s", "response_timeout: is not a positive duration",
		},
		"bounds crossed": {"reconnect_max", "1ms", "reconnect_max: 1ms is below 500ms"},
		"address without port": {
			"address", "smsc.example", `address: "smsc.example" is not host:port`,
		},
		"address list": {
			"address", []any{1}, "address: is neither a text nor a list of texts",
		},
		"no address": {"address", []any{}, "address: name at least one host:port"},
		"long system_id": {
			"system_id", strings.Repeat("x", 16), "system_id: is longer than 15 characters",
		},
		"no system_id":      {"system_id", "", "system_id: is missing"},
		"system_id as list": {"system_id", []any{}, "system_id: is not text"},
		"long system_type": {
			"system_type", strings.Repeat("x", 13), "system_type: is longer than 12",
		},
		"long service_type": {"service_type", "1234567", "service_type: is longer than 5"},
		"missing file":      {"password_file", "nowhere", "password_file: open nowhere"},
		"empty file":        {"password_file", "empty", "password_file: empty is empty"},
		"mode": {
			"bind", "receiver", `bind: "receiver" is none of transceiver, transmitter_receiver`,
		},
		"alphabet": {
			"alphabet", "utf8", `alphabet: "utf8" is none of ascii, gsm7, latin1`,
		},
		"long messages": {"long_messages", "udh", "long_messages:"},
		"version":       {"interface_version", 4, "interface_version:"},
		"receipts of failures": {
			"registered_delivery", "failure",
			"registered_delivery: asks for some of the final receipts",
		},
		"the same as a number": {
			"registered_delivery", 2, "registered_delivery: asks for some of the final receipts",
		},
		"of successes": {
			"registered_delivery", 0x13, "registered_delivery: asks for some of the final receipts",
		},
		"receipts": {
			"registered_delivery", "sometimes", "registered_delivery: is not a number from 0 to 255",
		},
		"ton":      {"source_ton", 256, "source_ton: is not a number from 0 to 255"},
		"from":     {"from", "far too long a name", "from: "},
		"tls word": {"tls", "maybe", "tls: is neither true nor false"},
		"tls forgotten": {
			"tls_server_name", "smsc", "tls: is off while other tls_ settings are set",
		},
		"ca":   {"tls_ca_file", "a.secret", "tls_ca_file: holds no PEM certificate"},
		"cert": {"tls_cert_file", "a.secret", "tls_cert_file: is not a PEM certificate"},
		"outcomes": {
			"outcomes", "rejected", "outcomes: is not a map from status to outcome",
		},
		"outcome code": {
			"outcomes", map[string]any{"x": "rejected"}, `outcomes: "x" is not a command_status`,
		},
		"outcome word": {
			"outcomes",
			map[string]any{"1": "lost"},
			`outcomes: 1: outcome "lost" is none of [unknown accepted rejected refused throttled] and unfit`,
		},
		"accepted error": {
			"outcomes", map[any]any{1: "accepted"}, "outcomes: 0x00000001 cannot be accepted",
		},
		"own tlv": {
			"tlvs",
			map[string]any{"0x0424": map[string]any{"text": "x"}},
			"tlvs: 0x0424 is written by the dispatcher itself",
		},
		"tlv of no form": {
			"tlvs", map[string]any{"0x1400": "acme"}, "tlvs: 0x1400: is not one of {text: …}",
		},
		"tlv of odd form": {
			"tlvs",
			map[string]any{"0x1400": map[string]any{"int8": 1}},
			"tlvs: 0x1400: int8: unknown setting",
		},
		"tlv of odd octets": {
			"tlvs",
			map[string]any{"0x1400": map[string]any{"hex": "0"}},
			"tlvs: 0x1400: hex: is not a row",
		},
		"tlv too large": {
			"tlvs",
			map[string]any{"0x1400": map[string]any{"uint8": 256}},
			"256 is not between 0 and 255",
		},
		"tlv of no tag": {
			"tlvs",
			map[string]any{"vendor": map[string]any{"uint8": 1}},
			`tlvs: "vendor" is not a tag`,
		},
		"tlv twice": {
			"tlvs", map[any]any{
				0x1400: map[string]any{"uint8": 1}, "0x1400": map[string]any{"uint8": 1},
			}, "tlvs: 0x1400 is there twice",
		},
		"tlvs as list": {"tlvs", []any{1}, "tlvs: is not a map from tag to value"},
		"key tag": {
			"key_tlv", "0x020C", "key_tlv: 0x020c is written by the dispatcher itself",
		},
		"no key tag": {"key_tlv", "ours", `key_tlv: "ours" is not a tag`},
		"key in the receipt": {
			"receipt_key_tlv", "0x1400", "receipt_key_tlv: nothing could come back",
		},
		"rules as map": {
			"source_rules", map[string]any{}, "source_rules: is not a list of rules",
		},
		"rule as text": {"source_rules", []any{"44"}, "source_rules: rule 1 is not a map"},
		"rule misspelt": {
			"source_rules",
			[]any{map[string]any{}, map[string]any{"form": "x"}},
			"source_rules: rule 2: form: unknown setting; did you mean from?",
		},
		"rule's sender": {
			"source_rules",
			[]any{map[string]any{"from": "far too long a name"}},
			"source_rules: rule 1: submission not encodable: source",
		},
		"rule's recipients": {
			"source_rules",
			[]any{map[string]any{"to": "UK"}},
			`source_rules: rule 1: to: "UK" is not the beginning of a number`,
		},
		"rule's digits": {
			"dest_rules",
			[]any{map[string]any{"replace": "x"}},
			"dest_rules: rule 1: replace: is not the beginning",
		},
		"meaning": {
			"receipt_meanings",
			map[string]any{"UNDELIV": "lost"},
			"receipt_meanings: UNDELIV: lost is none of pending",
		},
		"meaning of nothing": {
			"receipt_meanings", map[string]any{"/": "absent"}, `receipt_meanings: "/" is not a word`,
		},
		"receipt id": {"receipt_id", "hex", `receipt_id: "hex" is none of as_is`},
		"receipt id width": {
			"receipt_id_width", 256, "receipt_id_width: 256 is not between 1 and 255",
		},
		"address range": {
			"address_range", strings.Repeat("4", 41), "address_range: is longer than 40",
		},
		"priority": {"priority", 5, "priority: 5 is not between 0 and 4"},
		"class":    {"message_class", 4, "message_class: 4 is not between 0 and 3"},
		"language": {
			"shift_single", "welsh", `shift_single: language "welsh" has no tables`,
		},
		"no locking table": {
			"shift_locking", "spanish", "shift_locking: spanish has no locking table",
		},
		"query_rate":         {"query_rate", 5, "query_rate: is of no use without query_after"},
		"query_rate of zero": {"query_rate", 0, "query_rate: 0 is not between 1 and 1000"},
		"schedule":           {"schedule", "now", "schedule: is not a positive duration"},
	} {
		settings := map[string]any{
			"address": "127.0.0.1:2775", "system_id": "acme", "password_file": "a.secret",
		}
		settings[c.key] = c.value
		if c.key == "tls_ca_file" || c.key == "tls_cert_file" {
			settings["tls"] = true
		}
		_, err := parse(t, settings)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in the error", name)
		}
	}
}

func TestSettingsThatClashAreRefused(t *testing.T) {
	t.Parallel()
	vendor := map[string]any{"0x1400": map[string]any{"uint8": 1}}
	for want, settings := range map[string]map[string]any{
		"tlvs: 0x1400 is the key_tlv": {"tlvs": vendor, "key_tlv": "0x1400"},
		"bind: 3.3 knows no transceiver": {
			"interface_version": "3.3", "bind": "transceiver",
		},
		"interface_version: 3.3 has no optional": {"interface_version": "3.3", "tlvs": vendor},
		"interface_version: 3.3 has no": {
			"interface_version": "3.3", "long_messages": "sar",
		},
		"message_class: is written into":        {"message_class": 1, "ucs2_coding": 8},
		"message_class: has a data_coding":      {"message_class": 1, "alphabet": "latin1"},
		"shift_locking, shift_single: national": {"shift_single": "turkish", "alphabet": "latin1"},
		"receipt_key_tlv: nothing could come":   {"key_tlv": 0x0204, "receipt_key_tlv": "0x1400"},
		"receipt_key_tlv: 0x0424 holds":         {"key_tlv": 0x1400, "receipt_key_tlv": "0x0424"},
	} {
		settings["address"], settings["system_id"] = "h:1", "a"
		if _, err := parse(t, settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, err := parse(t, map[string]any{"addresss": "x", "window": -1, "binds": "x"})
	for _, want := range []string{
		"addresss: unknown setting; did you mean address?", "window: -1", "binds: is not",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestPasswordThatFitsNoBindIsRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("secretive", 8)
	_, err := ParseSettings(
		map[string]any{"address": "h:1", "system_id": "a", "password_file": "p"},
		files(map[string]string{"p": long}))
	if err == nil || strings.Contains(err.Error(), "secretive") ||
		!strings.Contains(err.Error(), "password_file") {
		t.Errorf("error %v", err)
	}
}

func TestTLSFilesAreRead(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"ca.pem": ca.pem, "cert.pem": ca.certPEM, "key.pem": ca.keyPEM,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inDir := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }
	settings := map[string]any{
		"address": "h:1", "system_id": "a", "tls": true, "tls_ca_file": "ca.pem",
		"tls_cert_file": "cert.pem", "tls_key_file": "key.pem",
	}
	cfg, err := ParseSettings(settings, inDir)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.TLS == nil || cfg.TLS.RootCAs == nil || len(cfg.TLS.Certificates) != 1 {
		t.Errorf("TLS settings %+v", cfg.TLS)
	}
	settings["tls_key_file"] = "lost.pem"
	if _, err := ParseSettings(settings, inDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing key: %v", err)
	}
}

func TestConfigThatCannotWorkStartsNothing(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"empty":     {},
		"version":   {Addresses: []string{"h:1"}, SystemID: "a", InterfaceVersion: 1},
		"mode":      {Addresses: []string{"h:1"}, SystemID: "a", Bind: 9},
		"alphabet":  {Addresses: []string{"h:1"}, SystemID: "a", Alphabet: 9},
		"messages":  {Addresses: []string{"h:1"}, SystemID: "a", LongMessages: 9},
		"format":    {Addresses: []string{"h:1"}, SystemID: "a", ValidityFormat: 9},
		"negative":  {Addresses: []string{"h:1"}, SystemID: "a", Window: -1},
		"intervals": {Addresses: []string{"h:1"}, SystemID: "a", EnquireLink: -1},
	} {
		if c, err := New(cfg); err == nil {
			t.Errorf("%s: New accepted it", name)
			_ = c.Close(t.Context())
		}
	}
}
