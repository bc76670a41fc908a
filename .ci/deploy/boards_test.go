package deploy

import (
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

// board is the part of a Grafana board that the tests read.
type board struct {
	Title  string
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Annotations struct{ List []struct{ Expr string } }
	Templating  struct {
		List []struct{ Current struct{ Value string } }
	}
}

// boards are those that are shipped, by file name.
func boards(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	all := map[string]board{}
	for _, file := range files {
		var b board
		name := filepath.Base(file)
		if err := json.Unmarshal(read(t, "deploy/grafana/dashboards/"+name), &b); err != nil {
			t.Fatal(name, err)
		}
		all[name] = b
	}
	return all
}

var placeholder = regexp.MustCompile(`{{(\w+)}}`)

func TestBoardsNameMetricsThatExist(t *testing.T) {
	known, queries := documented(t), 0
	for name, b := range boards(t) {
		ids := map[int]bool{}
		for _, p := range b.Panels {
			if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q", name, p.ID, p.Title)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				checkQuery(t, name+" "+p.Title, target.Expr, known)
				queries++
				for _, found := range placeholder.FindAllStringSubmatch(target.LegendFormat, -1) {
					if label := found[1]; label != "instance" &&
						!regexp.MustCompile(`by \([^)]*\b`+label+`\b`).MatchString(target.Expr) {
						t.Errorf("%s %s: %s has no label %s for its legend", name, p.Title,
							target.Expr, label)
					}
				}
			}
		}
		for _, a := range b.Annotations.List {
			checkQuery(t, name, a.Expr, known)
		}
	}
	if queries < 40 {
		t.Errorf("the boards have %d queries", queries)
	}
}

// emptyPanels are panels that show nothing of the recorded incident, and why.
var emptyPanels = map[string]string{
	"Operations that fail":           "none failed",
	"Rankings that the default made": "no route has a scoring rule that could fail",
}

// TestEveryPanelShowsTheRecordedIncident: a panel whose query finds nothing would look as if all
// was well.
func TestEveryPanelShowsTheRecordedIncident(t *testing.T) {
	storage := promqltest.LoadedStorage(t, recorded(t))
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	for _, b := range boards(t) {
		for _, p := range b.Panels {
			for _, target := range p.Targets {
				query, err := engine.NewRangeQuery(t.Context(), storage, nil,
					strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"),
					time.Unix(0, 0), time.Unix(0, 0).Add(incidentLength), 15*time.Second)
				if err != nil {
					t.Fatal(p.Title, err)
				}
				result, err := query.Exec(t.Context()).Matrix()
				if err != nil {
					t.Fatal(p.Title, err)
				}
				if _, listed := emptyPanels[p.Title]; shows(result) == listed {
					t.Errorf("%s: %s shows something: %t, and is listed as empty: %t", p.Title,
						target.Expr, shows(result), listed)
				}
				query.Close()
			}
		}
	}
}

// shows tells whether a graph has a point.
func shows(result promql.Matrix) bool {
	return slices.ContainsFunc(result, func(s promql.Series) bool {
		return slices.ContainsFunc(s.Floats, func(p promql.FPoint) bool { return !math.IsNaN(p.F) })
	})
}

// TestWhatAnAlertAsksIsOnABoard, so that whoever gets the alert can see since when and how much.
func TestWhatAnAlertAsksIsOnABoard(t *testing.T) {
	shown := map[string]bool{"dispatcher:code_lane": true} // a list of lanes and not a measurement
	for _, b := range boards(t) {
		for _, p := range b.Panels {
			for _, target := range p.Targets {
				maps.Copy(shown, asked(t, strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")))
			}
		}
	}
	for _, rule := range alerts(t) {
		for name := range asked(t, rule.Expr) {
			// The count of a histogram is a part of its panel.
			if !shown[name] && !shown[strings.TrimSuffix(name, "_count")+"_bucket"] {
				t.Errorf("%s asks for %s, which no panel shows", rule.Alert, name)
			}
		}
	}
}

// asked are the names of the series of an expression.
func asked(t *testing.T, text string) map[string]bool {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(text, err)
	}
	names := map[string]bool{}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			names[n.Name] = true
		}
		return nil
	})
	return names
}

// TestTheRunbookNamesPanelsThatExist: what stands in quotes and begins with a capital is a board, a
// panel, or what a page of the process says.
func TestTheRunbookNamesPanelsThatExist(t *testing.T) {
	known := map[string]bool{
		"No Kafka broker answers, or none takes status events": true, // of /readyz
		"Not in the consumer group":                            true,
		"Those before it ended within seconds":                 true,
	}
	for _, b := range boards(t) {
		known[b.Title] = true
		for _, p := range b.Panels {
			known[p.Title] = true
		}
	}
	text := strings.Join(strings.Fields(string(read(t, "docs/runbook.md"))), " ")
	quoted := regexp.MustCompile(`"([A-Z][^"]*)"`).FindAllStringSubmatch(text, -1)
	for _, found := range quoted {
		if !known[found[1]] {
			t.Errorf("docs/runbook.md names %q, which no board has", found[1])
		}
	}
	if len(quoted) < 10 {
		t.Errorf("docs/runbook.md names %d panels", len(quoted))
	}
}

// TestGrafanaFindsTheBoardsAndPrometheus in the compose file: the folder of the boards is mounted
// where it looks, and the source that the boards choose is the service of Prometheus.
func TestGrafanaFindsTheBoardsAndPrometheus(t *testing.T) {
	var folders struct {
		Providers []struct{ Options struct{ Path string } }
	}
	var sources struct {
		Datasources []struct{ UID, URL string }
	}
	const provisioning = "deploy/grafana/provisioning/"
	for file, into := range map[string]any{
		"dashboards/dispatcher.yaml": &folders, "datasources/prometheus.yaml": &sources,
	} {
		if err := yaml.Unmarshal(read(t, provisioning+file), into); err != nil {
			t.Fatal(file, err)
		}
	}
	mounts := map[string]string{} // by folder of the checkout
	p := project(t)
	for _, v := range p.Services["grafana"].Volumes {
		mounts[filepath.Base(v.Source)] = v.Target
	}
	if mounts["provisioning"] != "/etc/grafana/provisioning" || len(folders.Providers) != 1 ||
		folders.Providers[0].Options.Path != mounts["dashboards"] {
		t.Errorf("the folders are %v, and boards are read from %+v", mounts, folders)
	}
	if len(sources.Datasources) != 1 {
		t.Fatalf("the sources are %+v", sources)
	}
	source := sources.Datasources[0]
	at, err := url.Parse(source.URL)
	if err != nil || len(p.Services[at.Hostname()].Ports) != 1 ||
		strconv.Itoa(int(p.Services[at.Hostname()].Ports[0].Target)) != at.Port() {
		t.Errorf("no service answers at %s: %v", source.URL, err)
	}
	for name, b := range boards(t) {
		if v := b.Templating.List; len(v) != 1 || v[0].Current.Value != source.UID {
			t.Errorf("%s reads the source %+v, want %s", name, v, source.UID)
		}
	}
}
