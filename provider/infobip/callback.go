package infobip

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event is the body of a callback: delivery reports or inbound messages. A report has a status, an inbound message
// has none.
type event struct {
	Results *[]result `json:"results"`
}

type result struct {
	MessageID    string  `json:"messageId"`
	CallbackData string  `json:"callbackData"`
	Status       *status `json:"status"`
	Error        struct {
		ID int `json:"id"`
	} `json:"error"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// ReadCallback returns what delivery reports or inbound messages say; up to a hundred come at once.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	key, err := c.cfg.verify(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if json.Unmarshal(callback.Body, &e) != nil || e.Results == nil {
		return provider.CallbackContent{}, fmt.Errorf("no list of results: %w", provider.ErrMalformed)
	}
	var content provider.CallbackContent
	for _, r := range *e.Results {
		switch {
		case r.Status == nil && key != "", r.Status != nil && key != "" && r.key() != key:
			return provider.CallbackContent{}, fmt.Errorf("the address is that of another message: %w", provider.ErrForged)
		case r.Status == nil:
			content.Inbound = append(content.Inbound, provider.Inbound{
				Reference: r.MessageID, From: international(r.From), To: international(r.To), Text: r.Text, At: callback.At,
			})
		case r.MessageID != "":
			content.Receipts = append(content.Receipts, r.receipt(key, callback.At))
		}
	}
	return content, nil
}

// receipt reads a report. proven is the key of the message that alone the caller may speak of, or empty: an id beside it
// that is another one, which an account may have given itself, could as well be that of another message and is left out.
func (r *result) receipt(proven string, at time.Time) provider.Receipt {
	receipt := provider.Receipt{Reference: r.MessageID, Key: r.key(), At: at}
	if proven != "" && r.MessageID != proven {
		receipt.Reference = ""
	}
	receipt.State, receipt.Cause = r.Status.state(r.Error.ID)
	receipt.Code = web.SafeCode(r.Status.Name)
	if receipt.Code == "" {
		receipt.Code = web.SafeCode(strconv.Itoa(r.Status.ID))
	}
	if r.Error.ID != 0 {
		receipt.Code += "/" + web.SafeCode(strconv.Itoa(r.Error.ID))
	}
	return receipt
}

// ourKey is the form of provider.Submission.Key.
var ourKey = regexp.MustCompile(`^[0-9a-f]{32}$`)

// key is what we gave to the message: as its id, and once more beside it for accounts that give ids of their own.
func (r *result) key() string {
	for _, text := range []string{r.CallbackData, r.MessageID} {
		if ourKey.MatchString(text) {
			return text
		}
	}
	return ""
}

// longNumber is an international number without its plus; short codes have fewer digits.
var longNumber = regexp.MustCompile(`^[0-9]{7,15}$`)

// international puts the plus before a number that Infobip writes without one.
func international(number string) string {
	if longNumber.MatchString(number) {
		return "+" + number
	}
	return number
}
