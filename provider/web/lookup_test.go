package web_test

import (
	"net/http"
	"strconv"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// lookup is one whose answers are a number of entries, or "taken".
func lookup(certain bool) web.Lookup {
	return web.Lookup{
		Request: &web.Request{Method: http.MethodGet, URL: "/messages"}, AbsenceIsCertain: certain,
		Read: func(body []byte) (provider.LookupResult, int, error) {
			if string(body) == "taken" {
				return provider.LookupResult{State: provider.Taken, Reference: "ref"}, 1, nil
			}
			entries, err := strconv.Atoi(string(body))
			if err != nil {
				err = web.ErrNoList
			}
			return provider.LookupResult{}, entries, err
		},
	}
}

func TestOnlyAListWithTheKeyOrWithNothingAnswersALookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		certain bool
		want    provider.LookupState
	}{
		"found":                       {http.StatusOK, "taken", false, provider.Taken},
		"nothing":                     {http.StatusOK, "0", false, provider.Unanswered},
		"nothing, which is certain":   {http.StatusOK, "0", true, provider.NotTaken},
		"others, whatever is certain": {http.StatusOK, "1", true, provider.Unanswered},
		"no list":                     {http.StatusOK, "<html>", true, provider.Unanswered},
		"another status":              {http.StatusNotFound, "0", true, provider.Unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			got := channel(t, s.URL, http.MethodPost, asIs).LookUp(t.Context(), "key", lookup(c.certain))
			if got.State != c.want || (got.Err != nil) != (c.want == provider.Unanswered) || (got.Reference == "ref") != (c.want == provider.Taken) {
				t.Errorf("%+v, want %v", got, c.want)
			}
		})
	}
}

func TestALookupThatCannotBeMadeAnswersNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, cut)
	c := channel(t, s.URL, http.MethodPost, asIs)
	for _, key := range []string{"", "key"} {
		if got := c.LookUp(t.Context(), key, lookup(true)); got.State != provider.Unanswered || got.Err == nil {
			t.Errorf("%q: %+v", key, got)
		}
	}
	if requests, _ := s.seen(); requests != 1 {
		t.Errorf("%d requests, one of them without a key", requests)
	}
}
