package infobip

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Find asks the logs, which reach back 48 hours, for the message whose id is the key.
func (c *Channel) Find(ctx context.Context, key string) provider.LookupResult {
	return c.LookUp(ctx, key, c.cfg.lookup(key))
}

func (c *Config) lookup(key string) web.Lookup {
	query := url.Values{"messageId": {key}, "limit": {"2"}}
	return web.Lookup{
		Request:          &web.Request{Method: http.MethodGet, URL: "/sms/3/logs?" + query.Encode(), Header: c.header()},
		Read:             func(body []byte) (provider.LookupResult, int, error) { return readLogs(body, key) },
		AbsenceIsCertain: c.AbsenceIsCertain,
	}
}

// logs are entries of the log. An answer without the list says nothing.
type logs struct {
	Results *[]struct {
		MessageID string `json:"messageId"`
		Status    status `json:"status"`
	} `json:"results"`
}

// readLogs reads the logs. A message that Infobip lists as refused before it was sent counts as not taken.
func readLogs(body []byte, key string) (found provider.LookupResult, entries int, err error) {
	var list logs
	if err := json.Unmarshal(body, &list); err != nil || list.Results == nil {
		return provider.LookupResult{}, 0, web.ErrNoList
	}
	for _, entry := range *list.Results {
		if entry.MessageID != key {
			continue
		}
		if v, ok := entry.Status.meaning(); ok && v.Outcome == provider.Refused {
			return provider.LookupResult{State: provider.NotTaken}, len(*list.Results), nil
		}
		return provider.LookupResult{State: provider.Taken, Reference: key}, len(*list.Results), nil
	}
	return provider.LookupResult{}, len(*list.Results), nil
}
