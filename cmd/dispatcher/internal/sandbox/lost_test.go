package sandbox

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
)

// TestOnlyALostSubmitIsNotFound: by look-ups. The page and the receipts agree with them.
func TestOnlyALostSubmitIsNotFound(t *testing.T) {
	t.Parallel()
	for lost, want := range map[float64]provider.Outcome{
		0: provider.Accepted, 1: provider.Unknown,
	} {
		e := listen(t)
		s, err := Start(Config{
			Plan:   Each([]string{"sinch", "infobip"}, Profile{Lose: lost}),
			Folder: t.TempDir(), Receipts: e.URL,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		text, err := s.Routing()
		if err != nil {
			t.Fatal(err)
		}
		for name, channel := range e.open(t, text) {
			tier.Eventually(t, "ready", func() bool { ok, _ := channel.Ready(); return ok })
			timeout := 30 * time.Second
			if want == provider.Unknown {
				timeout = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			key := fmt.Sprintf("%032x", 7)
			r := channel.Send(ctx, provider.Submission{
				ID: "m", Attempt: 1, Key: key, To: "+447700900123", From: "Sandbox", Text: "Hello",
				Validity: time.Now().Add(time.Hour),
			})
			cancel()
			if r.Outcome != want {
				t.Fatalf("%s: %v, want %v", name, r.Outcome, want)
			}
			finding := channel.(provider.Finder).Find(t.Context(), key)
			if taken := finding.State == provider.Taken; taken != (want == provider.Accepted) {
				t.Errorf("%s: %+v of a submit that was %v", name, finding, want)
			}
			got := s.countOf(name)
			if got.Lost != int(lost) || got.Accepted != 1-int(lost) || got.Delivered != 0 {
				t.Errorf("%s counted %+v", name, got)
			}
		}
	}
}

// TestACutOverSMPPCutsAllSubmitsInFlight: as the guide says, more outcomes are unknown to the
// sender than the carrier has lost. The carrier's own figures still add up.
func TestACutOverSMPPCutsAllSubmitsInFlight(t *testing.T) {
	t.Parallel()
	e := listen(t)
	s, err := Start(
		Config{
			Plan: Each([]string{"smpp"},
				Profile{Cut: 0.05, Latency: 20 * time.Millisecond, Receipts: 1, Delivered: 1}),
			Folder:   t.TempDir(),
			Receipts: e.URL,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	text, err := s.Routing()
	if err != nil {
		t.Fatal(err)
	}
	channel := e.open(t, text)["smpp"]
	tier.Eventually(t, "ready", func() bool { ok, _ := channel.Ready(); return ok })
	const n = 60
	results := make(chan provider.Outcome, n)
	for i := range n {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			results <- channel.Send(ctx, provider.Submission{
				ID: fmt.Sprint(i), Attempt: 1,
				Key: fmt.Sprintf("%032x", i), To: "+447700900123", From: "Sandbox", Text: "Hello",
			}).
				Outcome
		}()
	}
	outcomes := map[provider.Outcome]int{}
	for range n {
		outcomes[<-results]++
	}
	got := s.countOf("smpp")
	if got.Lost == 0 || outcomes[provider.Unknown] <= got.Lost ||
		got.Accepted < outcomes[provider.Accepted] ||
		got.Submitted != got.Accepted+got.Lost ||
		got.Submitted > n {
		t.Errorf("outcomes %v, the carrier counted %+v", outcomes, got)
	}
}

// TestRefusedCallsAreCounted: a refused receipt is counted at its carrier and sent again, also when
// it came before the answer.
func TestRefusedCallsAreCounted(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	for _, early := range []float64{0, 1} {
		s, err := Start(
			Config{
				Plan:     Each([]string{"plivo"}, Profile{Receipts: 1, Delivered: 1, Early: early}),
				Folder:   t.TempDir(),
				Receipts: refusing.URL,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		text, err := s.Routing()
		if err != nil {
			t.Fatal(err)
		}
		channel := (&webhooks{Server: refusing, channels: map[string]provider.Channel{}}).
			open(t, text)["plivo"]
		if outcomes := submit(t, channel, 1); outcomes[provider.Accepted] != 1 {
			t.Fatalf("got %v", outcomes)
		}
		tier.Eventually(t, "a call was refused again", func() bool {
			return s.countOf("plivo").CallsRefused > 1
		})
	}
}

// TestAMessageOfASubscriberIsSentOnDemand: over every kind of carrier that has such messages, as
// curl and the form send it.
func TestAMessageOfASubscriberIsSentOnDemand(t *testing.T) {
	t.Parallel()
	called := make(chan string, 100)
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		called <- r.URL.Path + " " + r.URL.RawQuery + " " + string(body)
	}))
	t.Cleanup(hooks.Close)
	s, err := Start(
		Config{Plan: Each(Providers(), Profile{}), Folder: t.TempDir(), Receipts: hooks.URL},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	page, err := s.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Close() })
	form := get(t, page.URL()+"/inbound")
	for _, place := range s.Endpoints() {
		if !strings.Contains(form, "<option>"+place.Channel) {
			t.Errorf("the form does not offer %s", place.Channel)
		}
		status, answer := post(t, page.URL()+"/inbound", url.Values{
			"channel": {
				place.Channel,
			}, "from": {"+447700900123"}, "to": {"+15550100100"}, "text": {"STOPALL"},
		})
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", place.Channel, status, answer)
			continue
		}
		if place.Provider == "smpp" {
			continue // kept until there is a bind
		}
		if got := <-called; !strings.HasPrefix(got, "/receipts/"+place.Channel+" ") {
			t.Errorf("%s: got %s, want %q at its start",
				place.Channel, got, "/receipts/"+place.Channel+" ")
		}
	}
	for want, values := range map[string]url.Values{
		"there is no channel": {"channel": {"pigeon"}, "from": {"+1"}, "to": {"+2"}, "text": {"x"}},
		"name from":           {"channel": {"smpp"}, "from": {"+1"}},
	} {
		if status, answer := post(t, page.URL()+"/inbound",
			values); status != http.StatusUnprocessableEntity ||
			!strings.Contains(answer, want) {
			t.Errorf("%d %s, want %s", status, answer, want)
		}
	}
	hooks.Close()
	if status, answer := post(t, page.URL()+"/inbound", url.Values{
		"channel": {"plivo"},
		"from":    {"+447700900123"}, "to": {"+15550100100"},
		"text": {"x"},
	}); status != http.StatusUnprocessableEntity ||
		!strings.Contains(answer, "was not reached") {
		t.Errorf("%d: got %s", status, answer)
	}
}

// TestEveryKindOfCarrierHandsMessagesOfSubscribersOver: signed and in a form that its own adapter
// accepts.
func TestEveryKindOfCarrierHandsMessagesOfSubscribersOver(t *testing.T) {
	t.Parallel()
	e := listen(t)
	s, err := Start(
		Config{Plan: Each(Providers(), Profile{}), Folder: t.TempDir(), Receipts: e.URL},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	text, err := s.Routing()
	if err != nil {
		t.Fatal(err)
	}
	channels := e.open(t, text)
	for _, place := range s.Endpoints() {
		tier.Eventually(t, "ready", func() bool { ok, _ := channels[place.Channel].Ready(); return ok })
		if err := s.Inbound(t.Context(), place.Channel, provider.Inbound{
			From: "+447700900123",
			To:   "+15550100100", Text: "STOP",
		}); err != nil {
			t.Errorf("%s: got error %v", place.Channel, err)
			continue
		}
		tier.Eventually(t, "a message by "+place.Channel,
			func() bool { return len(e.subscribers(place.Channel)) > 0 })
		if got := e.subscribers(place.Channel)[0]; got.From != "+447700900123" ||
			got.To != "+15550100100" ||
			got.Text != "STOP" {
			t.Errorf("%s: got %+v, want From %v, To %v and Text %v",
				place.Channel, got, "+447700900123", "+15550100100", "STOP")
		}
	}
}

func post(t *testing.T, address string, values url.Values) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address,
		strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
