package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is the body of a callback; type determines its fields.
type event struct {
	Type            string `json:"type"`
	BatchID         string `json:"batch_id"`
	ClientReference string `json:"client_reference"`
	Status          string `json:"status"`
	Code            int    `json:"code"`
	// Statuses has the report on the whole batch, which here has one recipient.
	Statuses []struct {
		Status string `json:"status"`
		Code   int    `json:"code"`
		Count  int    `json:"count"`
	} `json:"statuses"`
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	Body string `json:"body"`

	ReceivedAt string `json:"received_at"`
}

// ReadCallback returns the content of a delivery report or an inbound message.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	nonce, err := c.cfg.verify(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if json.Unmarshal(callback.Body, &e) != nil {
		return provider.CallbackContent{},
			fmt.Errorf("no JSON of a known shape: %w", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: nonce}
	switch e.Type {
	case "recipient_delivery_report_sms":
		err = e.report(&content, e.Status, e.Code, callback.At)
	case "delivery_report_sms":
		if len(e.Statuses) == 1 { // several would be about several recipients
			err = e.report(&content, e.Statuses[0].Status, e.Statuses[0].Code, callback.At)
		}
	case "mo_text":
		content.Inbound = []provider.Inbound{{
			Reference: e.ID, From: web.International(e.From), To: web.International(e.To),
			Text: e.Body,
			At:   callback.At, SentAt: web.Time(e.ReceivedAt),
		}}
	}
	if err != nil {
		return provider.CallbackContent{}, err
	}
	return content, nil
}

// report adds a receipt.
func (e *event) report(
	content *provider.CallbackContent, status string, code int, at time.Time,
) error {
	receipt := provider.Receipt{
		Reference: e.BatchID, Key: web.OwnKey(e.ClientReference), At: at,
	}
	if receipt.Reference == "" && receipt.Key == "" {
		return fmt.Errorf("a report on nothing: %w", provider.ErrMalformed)
	}
	receipt.State, receipt.Cause = stateOf(status, code)
	receipt.Code = web.SafeCode(status) + "/" + web.SafeCode(strconv.Itoa(code))
	content.Receipts = []provider.Receipt{receipt}
	return nil
}

// Header fields of a signed callback, canonical.
const (
	headerSignature = "X-Sinch-Webhook-Signature"
	headerAlgorithm = "X-Sinch-Webhook-Signature-Algorithm"
	headerNonce     = "X-Sinch-Webhook-Signature-Nonce"
	headerTime      = "X-Sinch-Webhook-Signature-Timestamp"
)

// algorithm is the only one that Sinch documents.
const algorithm = "HmacSHA256"

// late is how long after its time a callback is accepted. Sinch retries for 22 hours and 45 minutes
// and does not say whether it signs again.
var late = web.RetryTolerance(23 * time.Hour)

// noncePattern has no dot: dots separate the body, the nonce and the time.
var noncePattern = regexp.MustCompile(`^[!-\-/-~]{1,128}$`)

// verify checks the sender and returns the nonce: Sinch signs "body.nonce.timestamp" with
// HMAC-SHA256 and encodes the sum in base64.
func (c *Config) verify(callback *provider.Callback) (nonce string, err error) {
	nonce = callback.Get(headerNonce)
	given, err := base64.StdEncoding.DecodeString(callback.Get(headerSignature))
	if err != nil || len(given) != sha256.Size || !noncePattern.MatchString(nonce) ||
		callback.Get(headerAlgorithm) != algorithm {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	stamp := callback.Get(headerTime)
	if !web.SignedByAny(c.Secrets, given, func(secret string) []byte {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(callback.Body)
		mac.Write([]byte("." + nonce + "." + stamp))
		return mac.Sum(nil)
	}) {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	return nonce, web.CheckStamp(stamp, callback.At, late)
}
