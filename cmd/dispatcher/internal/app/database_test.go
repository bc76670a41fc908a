package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestStartWarnsOfCommitsThatMayBeLost uses the server of the tests, which gives up durability for
// speed.
func TestStartWarnsOfCommitsThatMayBeLost(t *testing.T) {
	t.Parallel()
	l, err := ledger.Connect(t.Context(),
		ledger.Config{URL: ledgertest.URL(t), Region: "test", Host: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var out bytes.Buffer
	a := &App{log: zerolog.New(&out), ledger: l}
	if err := a.warnOfDurability(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"setting":"synchronous_commit","value":"off"`,
		`"setting":"fsync"`, `"setting":"full_page_writes"`, "attempts that went out already",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
}

func TestMain(m *testing.M) { ledgertest.Main(m) }

// TestEveryMetricIsInTheGuide: docs/metrics.md names each metric of ours with its labels, and no
// others. Metrics of the Kafka client are left out.
func TestEveryMetricIsInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, registered []string
	metric := regexp.MustCompile("(?m)^\\| `(dispatcher_\\w+)(\\{[\\w, ]*\\})?` \\|")
	for _, row := range metric.FindAllStringSubmatch(string(guide), -1) {
		documented = append(documented, row[1]+row[2])
	}
	s := newStageWith(t, oneChannel, func(o *Options) {
		text, _, err := seal.NewKey("sms.example.com")
		if err != nil {
			t.Fatal(err)
		}
		o.Settings.SealKeyFile = filepath.Join(t.TempDir(), "seal.key")
		if err := os.WriteFile(o.Settings.SealKeyFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}, nil)
	descriptions := make(chan *prometheus.Desc)
	go func() { s.app.registry.Describe(descriptions); close(descriptions) }()
	form := regexp.MustCompile(`fqName: "(dispatcher_\w+)".*variableLabels: (\{[^}]*\})`)
	for d := range descriptions {
		if m := form.FindStringSubmatch(d.String()); m != nil &&
			!strings.HasPrefix(m[1], "dispatcher_kafka_") {
			name := m[1]
			if m[2] != "{}" {
				name += regexp.MustCompile(`,`).ReplaceAllString(m[2], ", ")
			}
			registered = append(registered, name)
		}
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if registered = slices.Compact(registered); !slices.Equal(documented, registered) {
		for _, name := range registered {
			if !slices.Contains(documented, name) {
				t.Errorf("not in the guide: %s", name)
			}
		}
		for _, name := range documented {
			if !slices.Contains(registered, name) {
				t.Errorf("no metric: %s", name)
			}
		}
	}
}
