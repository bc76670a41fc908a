package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

// deadPage is a page of /dead.
type deadPage struct {
	Items []struct {
		Record      string     `json:"record"`
		ID          string     `json:"id"`
		Detail      string     `json:"detail"`
		ReplayedAt  *time.Time `json:"replayed_at"`
		ReplayedBy  string     `json:"replayed_by"`
		ReplayedVia string     `json:"replayed_via"`
		ReplayedAs  string     `json:"replayed_as"`
	} `json:"items"`
	Total int64  `json:"total"`
	Next  string `json:"next"`
}

// TestDeadRecordsAreListedByAFilterInPages, with what is wrong and what they were replayed as.
func TestDeadRecordsAreListedByAFilterInPages(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("no_route", envelopeOf("a", ""), envelopeOf("b", ""), envelopeOf("c", ""))
	s.dead("bad_number", `{"id":"d","to":"07700","text":"x"}`)
	if got := s.ask("operator", "POST", "/dead/replay",
		`{"records":["a"],"reason":"route added"}`); got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	list := func(query string) deadPage {
		return decode[deadPage](t, s.ask("viewer", "GET", "/dead?"+query, ""))
	}
	now := url.QueryEscape(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for query, want := range map[string]string{
		"": "dcba", "reason=no_route": "cba", "reason=none": "", "lane=otp": "dcba", "lane=bulk": "",
		"topic=sms.bad_number": "d", "since=" + now: "", "open=true": "dcb",
	} {
		var ids strings.Builder
		for _, item := range list(query).Items {
			ids.WriteString(item.ID)
		}
		if ids.String() != want || list(query).Total != int64(len(want)) {
			t.Errorf("%q: %s of %d", query, ids.String(), list(query).Total)
		}
	}
	var last deadPage
	for query := "limit=1&reason=no_route"; ; query = "limit=1&reason=no_route&cursor=" + last.Next {
		if last = list(query); last.Next == "" {
			break
		}
	}
	if len(last.Items) != 1 || last.Items[0].ReplayedAt == nil ||
		last.Items[0].ReplayedBy != "olga" || last.Items[0].ReplayedAs != "a" ||
		last.Items[0].ReplayedVia != "api" ||
		last.Items[0].Detail != "it was wrong" || last.Items[0].Record != "sms.no_route/2/0" {
		t.Errorf("the last page: %+v", last)
	}
}

// TestOneDeadRecordIsShown by its id or position, with the remedy and without its content.
func TestOneDeadRecordIsShown(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("bad_number", `{"id":"d","to":"077009","text":"x"}`, `{"id":"e","to":"1"}`)
	for record, id := range map[string]string{"d": "d", "sms.bad_number%2F2%2F1": "e"} {
		got := decode[struct {
			ID     string `json:"id"`
			Detail string `json:"detail"`
			Remedy string `json:"remedy"`
			Kept   *bool  `json:"payload_kept"`
			Bytes  *int   `json:"bytes"`
		}](t, s.ask("viewer", "GET", "/dead/records/"+record, ""))
		if got.ID != id || got.Detail != "it was wrong" || got.Remedy == "" || got.Kept == nil ||
			!*got.Kept || got.Bytes == nil || *got.Bytes == 0 {
			t.Errorf("%s: %+v", record, got)
		}
	}
	s.sql(`delete from dispatcher.payloads`)
	if got := s.ask("viewer", "GET", "/dead/records/d", ""); !strings.Contains(got.body,
		`"payload_kept":false`) || !strings.Contains(got.body, `"bytes":null`) {
		t.Errorf("without its content: %+v", got)
	}
	if got := s.ask("viewer", "GET", "/dead/records/nobody", ""); got.status != http.StatusNotFound {
		t.Errorf("of nobody: %+v", got)
	}
}
