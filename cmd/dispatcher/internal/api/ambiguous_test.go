package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// claimed stores messages with an attempt on channel b, which has no limits.
func (s *stage) claimed(ids ...string) []ledger.Message {
	s.t.Helper()
	if s.ledger.Instances.ID() == 0 {
		if err := s.ledger.Instances.Register(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	var messages []ledger.Message
	for i, id := range ids {
		messages = append(messages, ledger.Message{
			ID: id, Lane: "otp", Tenant: "shop", State: ledger.Sending, Digest: 1,
			ExpiresAt: time.Now().Add(time.Hour), Envelope: []byte(envelopeOf(id, "")),
			Plan: ledger.Plan{
				Route: "default", Version: 1, Draw: int64(i), Size: 100, KeyID: "k1", FirstChoice: "b",
				Segments: 1, Alphabet: "gsm7",
			},
		})
	}
	tx, err := s.ledger.Claims.Lock(s.t.Context(), ledger.Claim{
		Messages: messages, Channels: []string{"a", "b"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	seen.Channels[slices.IndexFunc(seen.Channels, func(c ledger.ChannelState) bool {
		return c.Name == "b"
	})].Gate.Active.Count += int64(len(seen.Messages))
	var d ledger.Decisions
	for i := range seen.Messages {
		d.Each = append(d.Each, ledger.Decision{
			State: ledger.Sending, Plan: seen.Messages[i].Plan, Attempt: ledger.Attempt{
				Number: 1, Channel: "b", Reason: ledger.ByFirstChoice, Segments: 1,
				PriceMicros: 28_000, Currency: "GBP",
			},
		})
	}
	if err := tx.Commit(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	return seen.Messages
}

// unanswered stores messages that channel b never answered. Of those named part, a part is known to
// be taken; those named final are given up.
func (s *stage) unanswered(ids ...string) {
	s.t.Helper()
	var all []ledger.Settlement
	for _, m := range s.claimed(ids...) {
		d := &ledger.Ambiguity{
			Key: "key of " + m.ID, Step: ledger.AwaitReceipt, Until: time.Now().Add(time.Hour),
			NextAt: time.Now().Add(time.Hour), Partly: strings.HasPrefix(m.ID, "part"),
		}
		one := ledger.Settlement{
			Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Unknown, Code: "timeout", Segments: 1,
			PriceMicros: 28_000, State: ledger.Unknown, Receipts: 1, Await: 4 * time.Hour,
			Ambiguity: d,
		}
		if strings.HasPrefix(m.ID, "final") {
			d.Step, d.ResolvedAs, d.NextAt = ledger.NoStep, ledger.Unresolved, time.Time{}
			one.Reason = "ambiguous_final"
		}
		all = append(all, one)
	}
	if err := s.ledger.Settlements.Settle(s.t.Context(), all); err != nil {
		s.t.Fatal(err)
	}
}

// age moves the time at which messages became ambiguous back by an hour.
func (s *stage) age(ids ...string) {
	s.t.Helper()
	s.sql(`update dispatcher.ambiguous d set opened_at = opened_at - interval '1 hour'
		from dispatcher.messages m where m.seq = d.message_seq
		and m.id in ('` + strings.Join(ids, `', '`) + `')`)
}

// ambiguousPage is a page of /ambiguous.
type ambiguousPage struct {
	Items []struct {
		ID    string `json:"id"`
		Code  string `json:"code"`
		Asked *int   `json:"asked"`
	} `json:"items"`
	Total          int64  `json:"total"`
	Next           string `json:"next"`
	Contradictions []struct {
		ID        string `json:"id"`
		Outcome   string `json:"outcome"`
		Reference string `json:"reference"`
		State     string `json:"state"`
	} `json:"contradictions"`
}

// settledPage is the answer of /ambiguous/settle.
type settledPage struct {
	As      string `json:"as"`
	DryRun  bool   `json:"dry_run"`
	Matched int64  `json:"matched"`
	Settled int64  `json:"settled"`
	Left    []struct {
		ID  string `json:"id"`
		Why string `json:"why"`
	} `json:"left"`
	Next string `json:"next"`
}

func decode[T any](t *testing.T, got answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &v); err != nil || got.status != http.StatusOK ||
		strings.Contains(got.body, "7700900") {
		t.Fatalf("%+v, %v", got, err)
	}
	return v
}

// TestAmbiguousMessagesAreSettledByAFilter of one channel and a time, as by the command. Messages
// that cannot be settled are listed and not changed.
func TestAmbiguousMessagesAreSettledByAFilter(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.unanswered("open-1", "part-1", "open-2", "open-3", "final-1")
	s.age("open-1", "part-1", "final-1")
	before := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
	settle := func(more string) answer {
		return s.ask("operator", "POST", "/ambiguous/settle",
			`{"channel":"b","before":"`+before+`","as":"not_taken"`+more+`}`)
	}
	got := decode[settledPage](t, settle(`,"dry_run":true`))
	if !got.DryRun || got.Matched != 2 || got.Settled != 0 || got.As != "not_taken" {
		t.Errorf("a dry run: %+v", got)
	}
	for _, none := range []string{
		`"lane":"bulk"`, `"tenant":"none"`, `"code":"none"`,
		`"since":"` + time.Now().Add(-30*time.Minute).UTC().Format(time.RFC3339) + `"`,
	} {
		if got := decode[settledPage](t, settle(`,"reason":"lost",`+none)); got.Matched != 0 ||
			got.Settled != 0 {
			t.Errorf("%s: %+v", none, got)
		}
	}
	got = decode[settledPage](t, settle(`,"reason":"lost","code":"timeout","since":"`+
		time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)+`"`))
	if got.Matched != 2 || got.Settled != 1 || len(got.Left) != 1 || got.Left[0].ID != "part-1" ||
		!strings.Contains(got.Left[0].Why, "taken in part") || got.Next != "" {
		t.Errorf("got %+v", got)
	}
	if n := s.sql(`select count(*) from audit.messages where (id, state) in (('final-1', 'unknown'),
		('open-1', 'retry'), ('open-2', 'unknown'), ('open-3', 'unknown'), ('part-1', 'unknown'))`); n !=
		5 {
		t.Errorf("%d messages are in the state that they should be in", n)
	}
	if n := s.sql(`select count(*) from audit.ambiguous
		where author = 'olga' and note = 'lost'`); n != 1 {
		t.Errorf("%d are settled by olga", n)
	}
	for _, bad := range []string{
		`{"as":"final","reason":"r"}`, `{"as":"final","all":true,"reason":"r"}`,
		`{"as":"final","channel":"b"}`, `{"as":"lost","channel":"b","reason":"r"}`,
		`{"as":"final","channel":"b","reason":"r","cursor":"x"}`,
		`{"as":"taken","channel":"b","reason":"r","reference":"7F31"}`,
	} {
		if got := s.ask("operator", "POST", "/ambiguous/settle", bad); got.status !=
			http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	typo := s.ask("operator", "POST", "/ambiguous/settle", `{"as":"final","channel":"z","reason":"r"}`)
	if typo.status != http.StatusNotFound || !strings.Contains(typo.body, "choose one of") {
		t.Errorf("a channel that there is not: %+v", typo)
	}
	if got := s.ask("viewer", "POST", "/ambiguous/settle", `{}`); got.status != http.StatusForbidden {
		t.Errorf("a viewer settles: %+v", got)
	}
}

// TestManyAmbiguousMessagesAreSettledPageByPage: also when whole pages hold only messages that
// cannot be settled.
func TestManyAmbiguousMessagesAreSettledPageByPage(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ids := make([]string, 9)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", map[bool]string{true: "part", false: "open"}[i%2 == 0], i)
	}
	s.unanswered(ids...)
	var settled, left, pages int
	for cursor := ""; ; {
		got := decode[settledPage](t, s.ask("operator", "POST", "/ambiguous/settle",
			`{"lane":"otp","as":"not_taken","reason":"r","limit":2,"cursor":"`+cursor+`"}`))
		settled, left, pages = settled+int(got.Settled), left+len(got.Left), pages+1
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	if settled != 4 || left != 5 || pages != 5 {
		t.Errorf("%d settled, %d left, in %d pages", settled, left, pages)
	}
}

func TestAmbiguousMessagesAreListedByAFilterInPages(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.unanswered("open-1", "open-2", "open-3", "final-1")
	s.age("open-1")
	list := func(query string) ambiguousPage {
		return decode[ambiguousPage](t, s.ask("viewer", "GET", "/ambiguous?"+query, ""))
	}
	var ids []string
	for query := "limit=2&all=true"; ; {
		page := list(query)
		for _, item := range page.Items {
			ids = append(ids, item.ID)
			if item.Asked == nil {
				t.Errorf("without asked: %+v", item)
			}
		}
		if page.Total != 4 {
			t.Errorf("a total of %d", page.Total)
		}
		if page.Next == "" {
			break
		}
		query = "limit=2&all=true&cursor=" + page.Next
	}
	slices.Sort(ids)
	if want := []string{"final-1", "open-1", "open-2", "open-3"}; !slices.Equal(ids, want) {
		t.Errorf("got %v", ids)
	}
	halfAnHourAgo := url.QueryEscape(time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339))
	for query, want := range map[string]int{
		"": 3, "code=timeout": 3, "code=none": 0, "tenant=shop": 3, "tenant=none": 0,
		"channel=a": 0, "since=" + halfAnHourAgo: 2, "before=" + halfAnHourAgo: 1,
	} {
		if page := list(query); len(page.Items) != want || page.Total != int64(want) {
			t.Errorf("%s: %+v", query, page)
		}
	}
	for _, cursor := range []string{"x", "MQ"} {
		if got := s.ask("viewer", "GET", "/ambiguous?cursor="+cursor, ""); got.status !=
			http.StatusUnprocessableEntity {
			t.Errorf("cursor %s: %+v", cursor, got)
		}
	}
}

// TestContradictionsAreListed: a message was settled as not taken, and a receipt says that it was
// delivered.
func TestContradictionsAreListed(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	m := s.claimed("order-1")[0]
	if err := s.ledger.Settlements.Settle(t.Context(), []ledger.Settlement{{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Refused, Code: "0x00000008",
		Denied: "7F31", Await: time.Hour, State: ledger.Retry, Reason: "refused",
		NextAt: time.Now().Add(time.Hour),
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ledger.Receipts.Receive(t.Context(), []ledger.Receipt{{
		Channel: "b", Reference: "7F31", State: provider.Delivered,
	}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "all=true", "channel=b"} {
		got := decode[ambiguousPage](t, s.ask("viewer", "GET", "/ambiguous?"+query, ""))
		if c := got.Contradictions; len(c) != 1 || c[0].ID != "order-1" || c[0].Reference != "7F31" ||
			c[0].Outcome != "refused" || c[0].State != "delivered" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	got := decode[ambiguousPage](t, s.ask("viewer", "GET", "/ambiguous?channel=a", ""))
	if got.Contradictions == nil || len(got.Contradictions) != 0 {
		t.Errorf("of channel a: %+v", got)
	}
}
