package vonage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is the body of a callback of the Messages API: the status of a message, or an inbound
// message, which has no status.
type event struct {
	Channel   string `json:"channel"`
	UUID      string `json:"message_uuid"`
	Status    string `json:"status"`
	ClientRef string `json:"client_ref"`
	Error     struct {
		Type  string `json:"type"`
		Title string `json:"title"`
	} `json:"error"`
	From        string `json:"from"`
	To          string `json:"to"`
	MessageType string `json:"message_type"`
	Text        string `json:"text"`
}

// readStatus reads a callback of the Messages API.
func (c *Config) readStatus(callback *provider.Callback) (provider.CallbackContent, error) {
	once, err := c.verifyToken(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if json.Unmarshal(callback.Body, &e) != nil {
		return provider.CallbackContent{},
			fmt.Errorf("no JSON of a known shape: %w", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: once}
	switch {
	case e.Channel != "sms": // another product of the same account
	case e.Status != "":
		receipt := provider.Receipt{Reference: e.UUID, At: callback.At}
		code := problemCode(e.Error.Type)
		if code == "" {
			code = e.Error.Title
		}
		receipt.State, receipt.Cause = statusState(e.Status, code)
		content.Receipts, err = complete(receipt, e.ClientRef, e.Status, code)
	case e.MessageType == "text" || e.MessageType == "":
		content.Inbound = []provider.Inbound{{
			Reference: e.UUID, From: web.International(e.From), To: web.International(e.To),
			Text: e.Text,
			At:   callback.At,
		}}
	}
	if err != nil {
		return provider.CallbackContent{}, err
	}
	return content, nil
}

// maxCode bounds a code: it becomes a column.
const maxCode = 64

// complete sets the code of a receipt and, if the reference is one of ours, its key.
func complete(
	receipt provider.Receipt, reference, status, code string,
) ([]provider.Receipt, error) {
	receipt.Key = web.OwnKey(reference)
	if receipt.Reference == "" && receipt.Key == "" {
		return nil, fmt.Errorf("a receipt for nothing: %w", provider.ErrMalformed)
	}
	receipt.Code = web.SafeCode(status)
	if code = web.SafeCode(code); code != "" && code != "0" {
		receipt.Code += "/" + code
	}
	if len(receipt.Code) > maxCode {
		receipt.Code = "other"
	}
	return []provider.Receipt{receipt}, nil
}

// readReceipt reads a callback of the SMS API.
func (c *Config) readReceipt(callback *provider.Callback) (provider.CallbackContent, error) {
	parameters, err := parametersOf(callback)
	if err != nil { // without parameters no signature can be verified
		return provider.CallbackContent{}, fmt.Errorf("%w: %w", err, provider.ErrForged)
	}
	for name := range parameters {
		// In the signed text, & and = are replaced in values only, so a name with one of them would
		// allow another cut of the text.
		if !namePattern.MatchString(name) {
			return provider.CallbackContent{},
				fmt.Errorf("a parameter that Vonage does not send: %w", provider.ErrForged)
		}
	}
	once, err := c.verifyParameters(callback, parameters)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	content := provider.CallbackContent{ReplayID: once}
	switch {
	case parameters["status"] != "":
		receipt := provider.Receipt{Reference: parameters["messageId"], At: callback.At}
		receipt.State, receipt.Cause = receiptState(parameters["status"], parameters["err-code"])
		content.Receipts, err = complete(receipt, parameters["client-ref"], parameters["status"],
			parameters["err-code"])
	case parameters["type"] == "text" || parameters["type"] == "unicode":
		var in provider.Inbound
		in, err = inbound(parameters)
		in.At = callback.At
		content.Inbound = []provider.Inbound{in}
	}
	if err != nil {
		return provider.CallbackContent{}, err
	}
	return content, nil
}

// namePattern is the format of Vonage's parameter names.
var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// inbound reads a message of a subscriber. The SMS API delivers long ones in parts.
func inbound(parameters map[string]string) (provider.Inbound, error) {
	in := provider.Inbound{
		Reference: parameters["messageId"], From: web.International(parameters["msisdn"]),
		To:   web.International(parameters["to"]),
		Text: parameters["text"],
	}
	if parameters["concat"] != "true" {
		return in, nil
	}
	total, err1 := strconv.ParseUint(parameters["concat-total"], 10, 8)
	part, err2 := strconv.ParseUint(parameters["concat-part"], 10, 8)
	if errors.Join(err1, err2) != nil || part < 1 || part > total {
		return provider.Inbound{},
			fmt.Errorf("a part of a message without its place: %w", provider.ErrMalformed)
	}
	in.Group, in.Part, in.Parts = groupOf(parameters["concat-ref"]), int(part)-1, int(total)
	return in, nil
}

// groupOf is the reference number shared by the parts. Vonage documents a text; one that is not
// a number of 16 bits is hashed, so that all parts get the same number.
func groupOf(reference string) uint16 {
	if n, err := strconv.ParseUint(reference, 10, 16); err == nil {
		return uint16(n)
	}
	return uint16(crc32.ChecksumIEEE([]byte(reference)) & 0xffff) //nolint:gosec // The low half.
}

// parametersOf returns the parameters of a callback, in one of the forms that an account can
// choose: GET with a query, POST with a form, or POST with a flat JSON object. It reads either the
// query or the body, which is what the signature covers.
func parametersOf(callback *provider.Callback) (map[string]string, error) {
	if callback.Method == http.MethodGet {
		_, query, _ := strings.Cut(callback.URL, "?")
		return formOf(query)
	}
	kind, _, err := mime.ParseMediaType(callback.Get("Content-Type"))
	if err == nil && kind == "application/json" {
		return objectOf(callback.Body)
	}
	return formOf(string(callback.Body))
}

func formOf(text string) (map[string]string, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, errors.New("no form")
	}
	parameters := make(map[string]string, len(values))
	for name, list := range values {
		if len(list) > 1 {
			return nil, errors.New("a parameter comes twice")
		}
		parameters[name] = list[0]
	}
	return parameters, nil
}

// mostParameters is several times what Vonage sends in one callback.
const mostParameters = 100

// objectOf reads a flat JSON object. It is not verified yet, so nothing nested is decoded, and few
// members: both would take many times the memory of the body.
func objectOf(body []byte) (map[string]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number is signed as it is written
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	parameters := map[string]string{}
	for decoder.More() {
		name, _ := decoder.Token() // an error comes again with the value
		value, err := decoder.Token()
		if err != nil {
			return nil, errors.New("no JSON object")
		}
		text := ""
		switch v := value.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case bool:
			text = strconv.FormatBool(v)
		case nil:
		default:
			return nil, errors.New("the JSON object is not flat")
		}
		key, _ := name.(string) // always: names of members are strings
		if _, twice := parameters[key]; twice {
			return nil, errors.New("a parameter comes twice")
		}
		if parameters[key] = text; len(parameters) > mostParameters {
			return nil, errors.New("too many parameters")
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("no JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return parameters, nil
}
