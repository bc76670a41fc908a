package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/provider/web"
)

func TestAChannelAsksOnlyForExpectedReceipts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more     string
		receipts config.Receipts
		want     bool
	}{
		"by default":    {"", config.Receipts{}, true},
		"none expected": {"", config.Receipts{None: true}, false},
		"none, but set": {", registered_delivery: 17", config.Receipts{None: true}, false},
		"expected all along": {
			", registered_delivery: none",
			config.Receipts{Within: time.Hour},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan bool, 1)
			carrier, err := smpptest.Start(
				smpptest.Config{OnSubmit: func(s smpptest.Submit) { asked <- s.Receipt }},
			)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(carrier.Close)
			channel := channelOf(t, carrier.Addr(), c.more)
			channel.Receipts = c.receipts
			opened, err := (&connector{log: zerolog.Nop()}).adapter(channel,
				newChannelHealth(channel.Name, zerolog.Nop(), nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close(t.Context()) })
			for {
				r := opened.Send(
					t.Context(),
					provider.Submission{
						ID:      "m",
						Attempt: 1,
						To:      "+447700900123",
						From:    "ACME",
						Text:    "hello",
					},
				)
				if r.Outcome == provider.Accepted {
					break
				}
				<-time.After(time.Millisecond) // not bound yet
			}
			if got := <-asked; got != c.want {
				t.Errorf("receipt requested: got %t, want %t", got, c.want)
			}
		})
	}
}

// TestASettingThatIsIgnoredIsLogged: documents of earlier builds may have it.
func TestASettingThatIsIgnoredIsLogged(t *testing.T) {
	t.Parallel()
	for more, logged := range map[string]bool{"": false, ", validity: 24h": true} {
		var log strings.Builder
		channel := channelOf(t, "127.0.0.1:1", more)
		opened, err := (&connector{log: zerolog.New(&log)}).adapter(channel,
			newChannelHealth(channel.Name, zerolog.Nop(), nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = opened.Close(t.Context())
		if got := strings.Contains(log.String(), "validity has no effect"); got != logged {
			t.Errorf("%q: logged %q", more, &log)
		}
	}
}

// TestAChannelAsksForItsOwnReceiptsBeforeItQueries: the ledger knows those that other processes
// got.
func TestAChannelAsksForItsOwnReceiptsBeforeItQueries(t *testing.T) {
	t.Parallel()
	carrier, err := smpptest.Start(smpptest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	asked := make(chan string, 1)
	channel := channelOf(t, carrier.Addr(), ", query_after: 20ms")
	opened, err := (&connector{
		log: zerolog.Nop(),
		reported: func(_ context.Context, name string, references []string) ([]string, error) {
			asked <- name + " " + strings.Join(references, " ")
			return references, nil
		},
	}).adapter(channel, newChannelHealth(channel.Name, zerolog.Nop(), nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close(t.Context()) })
	var sent provider.Result
	tier.Eventually(t, "the channel is bound", func() bool {
		sent = opened.Send(t.Context(), provider.Submission{
			ID: "m", Attempt: 1, To: "+447700900123", From: "ACME", Text: "hello",
		})
		return sent.Outcome == provider.Accepted
	})
	if got := <-asked; got != "a "+sent.Reference {
		t.Errorf("asked for %q, want the receipt of %s on channel a", got, sent.Reference)
	}
}

// builtIn are the kinds of providers for which the connector needs no opener.
var builtIn = []string{"smpp", "sandbox"}

// TestEveryKindOfProviderIsKnownEverywhere: each kind of the routing document has an adapter, a
// page in the guide and a carrier in the sandbox.
func TestEveryKindOfProviderIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	words := config.Providers()
	for _, word := range words {
		if slices.Contains(builtIn, word) {
			continue
		}
		if !Webbed(word) {
			t.Errorf("provider %s has no opener", word)
		}
		if _, err := os.Stat("../../../../docs/providers/" + word + ".md"); err != nil {
			t.Errorf("provider %s has no page: %v", word, err)
		}
		if !slices.Contains(sandbox.Providers(), word) {
			t.Errorf("provider %s has no carrier in the sandbox", word)
		}
	}
	for word := range maps.Keys(openers()) {
		if !slices.Contains(words, word) {
			t.Errorf("provider %s is not in the list of providers", word)
		}
	}
}

// TestEveryOpenerKeepsToTheRules: without settings it names the missing ones. Each channel that it
// opens reads callbacks and has the capabilities of its provider.
func TestEveryOpenerKeepsToTheRules(t *testing.T) {
	t.Parallel()
	for word, open := range openers() {
		if _, err := open(map[string]any{}, web.Environment{ReadFile: os.ReadFile}); err == nil ||
			!strings.Contains(err.Error(), ": ") {
			t.Errorf("%s opened without settings: %v", word, err)
		}
		if _, err := open(map[string]any{"unheard_of": 1},
			web.Environment{ReadFile: os.ReadFile}); err == nil ||
			!strings.Contains(err.Error(), "unheard_of: ") {
			t.Errorf("%s accepted an unknown setting: %v", word, err)
		}
	}
	s, err := sandbox.Start(
		sandbox.Config{
			Plan:     sandbox.Each(sandbox.Providers(), sandbox.Profile{}),
			Folder:   t.TempDir(),
			Receipts: "http://127.0.0.1:1",
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, c := range documentOf(t, s).Channels {
		if c.Provider == "smpp" {
			continue
		}
		opened, err := opener(c.Provider)(
			c.Settings,
			web.Environment{
				ReadFile: os.ReadFile,
				Callback: "https://sms.example.com/receipts/" + c.Name,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close(t.Context()) })
		listener, ok := opened.(provider.CallbackReader)
		capable, says := opened.(provider.Capable)
		if !ok || !says {
			t.Errorf("%s: reads callbacks %v, has capabilities %v", c.Provider, ok, says)
			continue
		}
		can := capable.Capabilities()
		if _, finds := opened.(provider.Finder); can.LookupFor > 0 && !finds || !can.Receipts {
			t.Errorf("%s: %+v, finds %v", c.Provider, can, finds)
		}
		received, err := listener.ReadCallback(
			&provider.Callback{
				Method: "POST",
				URL:    "https://sms.example.com/receipts/" + c.Name,
				Body:   []byte("{}"),
			},
		)
		if !errors.Is(err, provider.ErrForged) || len(received.Receipts)+len(received.Inbound) > 0 {
			t.Errorf("%s: an unsigned callback: %v, %+v", c.Provider, err, received)
		}
	}
}

func documentOf(t *testing.T, s *sandbox.Sandbox) *config.Routing {
	t.Helper()
	text, err := s.Routing()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := config.ParseRouting("sandbox.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestExamplesOfTheProviderPagesCanBeUsed: they are valid routing documents, and adapters accept
// them as far as that can be checked without the files that they name.
func TestExamplesOfTheProviderPagesCanBeUsed(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../docs/providers/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err, pages)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range block.FindAllSubmatch(text, -1) {
			name := fmt.Sprintf("%s example %d", filepath.Base(page), i+1)
			example := string(m[1])
			switch word := strings.TrimSuffix(filepath.Base(page), ".md"); {
			case strings.HasPrefix(example, "base_url:"): // the settings of a channel
				indented := strings.ReplaceAll("\n"+strings.TrimSpace(example), "\n", "\n      ")
				example = "channels:\n  a:\n    provider: " + word + "\n    settings:" +
					indented + "\n"
			case !strings.HasPrefix(example, "channels:"):
				continue // a fragment
			}
			if !strings.Contains(example, "\nroutes:") {
				example += "routes: [{name: default, channels: [" + strings.Join(
					channelNames(example),
					", ",
				) + "], mode: round_robin}]\n"
			}
			doc, err := config.ParseRouting(name, []byte(example))
			if err != nil {
				t.Error(err)
				continue
			}
			if err := CheckChannels(name, doc, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

func channelNames(example string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^  ([\w.-]+):`).FindAllStringSubmatch(example, -1) {
		names = append(names, m[1])
	}
	return names
}
