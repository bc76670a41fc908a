package sinch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Find lists the batches of the last 24 hours, which is the API's default, that carry the key.
func (c *Channel) Find(ctx context.Context, key string) provider.LookupResult {
	return c.LookUp(ctx, key, c.cfg.lookup(key))
}

func (c *Config) lookup(key string) web.Lookup {
	query := url.Values{"client_reference": {key}, "page_size": {"2"}}
	return web.Lookup{
		Request: &web.Request{
			Method: http.MethodGet, URL: c.path() + "?" + query.Encode(), Header: http.Header{"Authorization": {"Bearer " + c.Token}},
		},
		Read:             func(body []byte) (provider.LookupResult, int, error) { return readPage(body, key) },
		AbsenceIsCertain: c.AbsenceIsCertain,
	}
}

// page is one page of a list of batches. An answer without the list says nothing.
type page struct {
	Batches *[]struct {
		ID              string `json:"id"`
		ClientReference string `json:"client_reference"`
	} `json:"batches"`
}

func readPage(body []byte, key string) (found provider.LookupResult, entries int, err error) {
	var list page
	if err := json.Unmarshal(body, &list); err != nil || list.Batches == nil {
		return provider.LookupResult{}, 0, web.ErrNoList
	}
	for _, b := range *list.Batches {
		if b.ClientReference == key && b.ID != "" {
			return provider.LookupResult{State: provider.Taken, Reference: b.ID}, len(*list.Batches), nil
		}
	}
	return provider.LookupResult{}, len(*list.Batches), nil
}
