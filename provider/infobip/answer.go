package infobip

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answer has one entry per destination, or an error. Descriptions may contain a number and are not
// read.
type answer struct {
	Messages []struct {
		MessageID string `json:"messageId"`
		Status    status `json:"status"`
	} `json:"messages"`
	ErrorCode  string `json:"errorCode"`
	Violations []struct {
		Property string `json:"property"`
	} `json:"violations"`
}

// status is the state of a message. Infobip answers 200 even to messages that it rejects, so the
// status decides.
type status struct {
	GroupID int    `json:"groupId"`
	ID      int    `json:"id"`
	Name    string `json:"name"`
}

// Groups of statuses.
const (
	groupAccepted      = 0
	groupPending       = 1
	groupUndeliverable = 2
	groupDelivered     = 3
	groupExpired       = 4
	groupRejected      = 5
)

// Classify reads the answer to a submission.
func (a api) Classify(got *web.Answer) provider.Result {
	var parsed answer
	readable := json.Unmarshal(got.Body, &parsed) == nil
	switch got.Status {
	case http.StatusOK:
		if !readable || len(parsed.Messages) != 1 {
			return got.Unreadable("")
		}
		return accepted(got, parsed.Messages[0].MessageID, parsed.Messages[0].Status)
	case http.StatusBadRequest:
		return badRequest(got, &parsed)
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return got.Result(web.Refused("the API has no such address; base_url is wrong"),
			parsed.ErrorCode)
	}
	if r, ok := got.ByStatus(parsed.ErrorCode); ok {
		return r
	}
	return got.Unreadable(parsed.ErrorCode)
}

// accepted reads the status of a message that was answered with 200.
func accepted(got *web.Answer, id string, s status) provider.Result {
	code := strconv.Itoa(s.ID)
	switch s.GroupID {
	case groupAccepted, groupPending, groupDelivered:
		if id == "" || (s.GroupID == groupAccepted && s.Name == "") {
			return got.Unreadable(code)
		}
		return provider.Result{Outcome: provider.Accepted, Reference: id}
	}
	if v, ok := s.meaning(); ok {
		return got.Result(v, code)
	}
	return got.Unreadable(code)
}

// ofRecipient, ofSender and ofText match the paths of the properties that come from the message.
// All other properties are the channel's: ids, transliteration, the content type of callbacks.
var (
	ofRecipient = regexp.MustCompile(`(^|\.)destinations\[[0-9]+\]\.to$`)
	ofSender    = regexp.MustCompile(`(^|\.)sender$`)
	ofText      = regexp.MustCompile(`(^|\.)content\.text$`)
)

// badRequest distinguishes a refused recipient, a refused sender or text, and a request that the
// API does not understand. Nothing was sent, if the answer comes from the API: a 400 without a code
// of Infobip may come from a proxy.
func badRequest(got *web.Answer, parsed *answer) provider.Result {
	if parsed.ErrorCode == "" {
		return got.Unreadable("")
	}
	recipients, senders, texts := 0, 0, 0
	for _, v := range parsed.Violations {
		switch {
		case ofRecipient.MatchString(v.Property):
			recipients++
		case ofSender.MatchString(v.Property):
			senders++
		case ofText.MatchString(v.Property):
			texts++
		}
	}
	switch all := len(parsed.Violations); {
	case all == 0 || recipients+senders+texts < all:
		return got.Result(web.Refused("the API does not take such a request"), parsed.ErrorCode)
	case recipients == all:
		return got.Result(web.Rejected("the recipient breaks the rules of the API"), parsed.ErrorCode)
	case senders > 0:
		return got.Result(web.BadSender("the sender breaks the rules of the API"), parsed.ErrorCode)
	}
	return got.Result(web.Unfit("the text breaks the rules of the API"), parsed.ErrorCode)
}

// Find searches the logs, which cover 48 hours, for the message whose id is the key.
func (c *Channel) Find(ctx context.Context, key string) provider.LookupResult {
	return c.LookUp(ctx, key, c.cfg.lookup(key))
}

func (c *Config) lookup(key string) web.Lookup {
	query := url.Values{"messageId": {key}, "limit": {"2"}}
	return web.Lookup{
		Request: &web.Request{
			Method: http.MethodGet, URL: "/sms/3/logs?" + query.Encode(), Header: c.header(),
		},
		Read: func(body []byte) (provider.LookupResult, int,
			error,
		) {
			return readLogs(body, key)
		},
		AbsenceIsCertain: c.AbsenceIsCertain,
	}
}

// logs are entries of the log. An answer without the list cannot be used.
type logs struct {
	Results *[]struct {
		MessageID string `json:"messageId"`
		Status    status `json:"status"`
	} `json:"results"`
}

// readLogs reads the logs. They show also messages that were refused or rejected before they were
// sent.
func readLogs(body []byte, key string) (found provider.LookupResult, entries int, err error) {
	var list logs
	if err := json.Unmarshal(body, &list); err != nil || list.Results == nil {
		return provider.LookupResult{}, 0, web.ErrNoList
	}
	for _, entry := range *list.Results {
		if entry.MessageID != key {
			continue
		}
		found := provider.LookupResult{State: provider.Taken, Reference: key}
		switch v, _ := entry.Status.meaning(); v.Outcome {
		case provider.Refused:
			found = provider.LookupResult{State: provider.NotTaken}
		case provider.Rejected:
			found = provider.LookupResult{
				State: provider.LookupRejected, Code: "200/" + strconv.Itoa(entry.Status.ID),
			}
		case provider.Unknown, provider.Accepted, provider.Throttled: // it was taken
		}
		return found, len(*list.Results), nil
	}
	return provider.LookupResult{}, len(*list.Results), nil
}
