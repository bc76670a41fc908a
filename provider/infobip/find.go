package infobip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Find asks the logs, which reach back 48 hours, for the message whose id is the key.
func (c *Channel) Find(ctx context.Context, key string) provider.Finding {
	if key == "" {
		return provider.Finding{Err: errors.New("the submission had no key")}
	}
	query := url.Values{"messageId": {key}, "limit": {"2"}}
	answer, err := c.Ask(ctx, &web.Request{
		Method: http.MethodGet, URL: "/sms/3/logs?" + query.Encode(), Header: c.cfg.header(),
	})
	if err != nil {
		return provider.Finding{Err: err}
	}
	return c.cfg.found(answer, key)
}

// logs are entries of the log. An answer without the list says nothing.
type logs struct {
	Results *[]struct {
		MessageID string `json:"messageId"`
		Status    status `json:"status"`
	} `json:"results"`
}

// found reads the logs. A message that Infobip lists as refused before it was sent counts as not taken.
func (c *Config) found(answer *web.Answer, key string) provider.Finding {
	if answer.Status != http.StatusOK {
		return provider.Finding{Err: fmt.Errorf("the API answers the lookup with status %d", answer.Status)}
	}
	var list logs
	if err := json.Unmarshal(answer.Body, &list); err != nil || list.Results == nil {
		return provider.Finding{Err: errors.New("the answer to the lookup cannot be read")}
	}
	for _, entry := range *list.Results {
		if entry.MessageID != key {
			continue
		}
		if v, ok := entry.Status.verdict(); ok && v.outcome == provider.Refused {
			return provider.Finding{Known: provider.NotTaken}
		}
		return provider.Finding{Known: provider.Taken, Reference: key}
	}
	switch {
	case len(*list.Results) > 0:
		return provider.Finding{Err: errors.New("the answer to the lookup is about other messages")}
	case c.AbsenceIsCertain:
		return provider.Finding{Known: provider.NotTaken}
	}
	return provider.Finding{Err: errors.New("the logs do not show the key; it may still come")}
}
