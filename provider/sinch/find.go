package sinch

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

// Find lists the batches of the last 24 hours, which is the API's default, that carry the key.
func (c *Channel) Find(ctx context.Context, key string) provider.Finding {
	if key == "" {
		return provider.Finding{Err: errors.New("the submission had no key")}
	}
	query := url.Values{"client_reference": {key}, "page_size": {"2"}}
	answer, err := c.Ask(ctx, &web.Request{
		Method: http.MethodGet, URL: c.cfg.path() + "?" + query.Encode(),
		Header: http.Header{"Authorization": {"Bearer " + c.cfg.Token}},
	})
	if err != nil {
		return provider.Finding{Err: err}
	}
	return c.cfg.found(answer, key)
}

// page is one page of a list of batches. An answer without the list says nothing.
type page struct {
	Batches *[]struct {
		ID              string `json:"id"`
		ClientReference string `json:"client_reference"`
	} `json:"batches"`
}

var errAbsent = errors.New("no batch has the key; it may still show up")

func (c *Config) found(answer *web.Answer, key string) provider.Finding {
	if answer.Status != http.StatusOK {
		return provider.Finding{Err: fmt.Errorf("the API answers the lookup with status %d", answer.Status)}
	}
	var list page
	if err := json.Unmarshal(answer.Body, &list); err != nil || list.Batches == nil {
		return provider.Finding{Err: errors.New("the answer to the lookup cannot be read")}
	}
	for _, b := range *list.Batches {
		if b.ClientReference == key && b.ID != "" {
			return provider.Finding{Known: provider.Taken, Reference: b.ID}
		}
	}
	switch {
	case len(*list.Batches) > 0:
		return provider.Finding{Err: errors.New("the answer to the lookup is about other batches")}
	case c.AbsenceIsCertain:
		return provider.Finding{Known: provider.NotTaken}
	}
	return provider.Finding{Err: errAbsent}
}
