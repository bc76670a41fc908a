package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// axeVersion is the release of axe-core that checks the pages.
const axeVersion = "4.14.1"

// screenshots names the folder that gets a picture of each page; without it none are taken.
const screenshots = "SCREENSHOTS"

// page is a page of the console with the name of its picture.
type page struct{ name, path string }

var pages = []page{
	{"overview", "/"},
	{"routes", "/routes"},
	{"route", "/routes/default"},
	{"versions", "/routing"},
	{"document", "/routing/edit"},
	{"version", "/routing/3"},
	{"channels", "/channels"},
	{"channel", "/channels/a"},
	{"pauses", "/pauses"},
	{"find", "/messages"},
	{"optouts", "/opt-outs"},
	{"message", "/messages/demo-7-0"},
	{"scheduled", "/messages/later"},
	{"ambiguous", "/ambiguous"},
	{"instances", "/instances"},
	{"reports", "/reports"},
	{"audit", "/audit"},
	{"missing", "/messages/there-is-none"},
	{"problem", "/channels/none"},
}

// axe is the source of axe-core, from npm.
func axe(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder,
		"axe-core@"+axeVersion)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install axe-core: %v\n%s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(folder, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// violation is what axe finds.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// check reports what axe finds on the page of a tab.
func check(t *testing.T, ctx context.Context, source, what string) {
	t.Helper()
	value[bool](t, ctx, source+";true")
	out := value[string](t, ctx, `axe.run().then((r) => JSON.stringify(r.violations))`)
	var found []violation
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		for _, n := range v.Nodes {
			t.Errorf("%s: %s (%s):\n%.300s\n%s", what, v.ID, v.Help, n.HTML, n.Summary)
		}
	}
}

// TestEveryPageIsAccessible: axe-core finds nothing, light and dark, on a desktop and on a phone,
// and no page is wider than the screen.
func TestEveryPageIsAccessible(t *testing.T) {
	folder := os.Getenv(screenshots)
	s, source := start(t), axe(t)
	s.traffic(t, folder != "")
	ctx := browser(t)
	look(t, ctx, 1280, 900, "light")
	open(t, ctx, s.url+"/login")
	check(t, ctx, source, "login")
	shoot(t, ctx, folder, "login")
	s.signIn(t, ctx, "admin")
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 900}, {"phone", 390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			look(t, ctx, screen.width, screen.height, scheme)
			for _, p := range pages {
				what := fmt.Sprintf("%s, %s, %s", p.path, screen.name, scheme)
				open(t, ctx, s.url+p.path)
				check(t, ctx, source, what)
				width := value[int64](t, ctx, `document.documentElement.scrollWidth`)
				if width > screen.width {
					t.Errorf("%s is %d wide", what, width)
				}
				switch {
				case screen.name == "desktop" && scheme == "light":
					shoot(t, ctx, folder, p.name)
				case p.name == "overview", p.name == "route":
					shoot(t, ctx, folder, p.name+"-"+screen.name+"-"+scheme)
				}
			}
		}
	}
}

// traffic gives the pages something to show: limits and other changes, messages now and for later,
// and records that cannot be used. Where pictures are taken it goes on for a minute.
func (s *site) traffic(t *testing.T, long bool) {
	t.Helper()
	by := []string{"--author", "anna"}
	for _, args := range [][]string{
		{"limits", "set", "a", "--window", "1s", "--max", "60", "--reason", "agreed with the carrier"},
		{"limits", "set", "c", "--window", "1d", "--max", "9000", "--reason", "contract of November"},
		{"weights", "set", "default", "a=30", "b=15", "c=55", "--reason", "a has more capacity"},
		{"channel", "drain", "b", "--reason", "maintenance of the carrier"},
	} {
		s.dispatcher(t, "", append(args, by...)...)
	}
	s.dispatcher(t, "", append([]string{
		"optouts", "add", "+447700900199", "--tenant", "shop", "--reason", "asked by letter",
	}, by...)...)
	s.dispatcher(t, "", "send", "--id", "later", "--to", "+447700900123", "--text", "Hello",
		"--send-at", "2099-01-01T00:00:00Z", "--expires-at", "2099-01-02T00:00:00Z")
	s.dead(t)
	rounds := 1
	if long {
		rounds = 12
	}
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for round := range rounds {
		var lines strings.Builder
		for i := range 250 + 40*(round%5) {
			fmt.Fprintf(&lines,
				`{"id":"now-%d-%d","to":"+4477009%05d","from":"ACME","text":"Your code is %06d"}`+"\n",
				round, i, i, i)
		}
		s.dispatcher(t, lines.String(), "send", "--file", "-", "--lane", []string{"otp", "bulk"}[round%2])
		if round < rounds-1 {
			<-ticker.C
		}
	}
}

// dead publishes a record that is not JSON, and one without a number.
func (s *site) dead(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "endpoints.json"))
	if err != nil {
		t.Fatal(err)
	}
	var endpoints struct {
		Brokers []string `json:"kafka_brokers"`
	}
	if err := json.Unmarshal(text, &endpoints); err != nil || len(endpoints.Brokers) == 0 {
		t.Fatalf("%s: %v", text, err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(endpoints.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, record := range []string{`Hello`, `{"id":"order-7731","to":"12","text":"Hello"}`} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{
			Topic: "sms.bulk", Value: []byte(record),
		}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
