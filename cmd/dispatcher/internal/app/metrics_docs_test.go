package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestEveryMetricIsInTheGuide: docs/metrics.md names each metric of ours with its labels, and no others.
// Those of the Kafka client are its own.
func TestEveryMetricIsInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, registered []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(dispatcher_\\w+)(\\{[\\w, ]*\\})?` \\|").FindAllStringSubmatch(string(guide), -1) {
		documented = append(documented, row[1]+row[2])
	}
	s := newStage(t, oneChannel)
	descriptions := make(chan *prometheus.Desc)
	go func() { s.app.registry.Describe(descriptions); close(descriptions) }()
	form := regexp.MustCompile(`fqName: "(dispatcher_\w+)".*variableLabels: (\{[^}]*\})`)
	for d := range descriptions {
		if m := form.FindStringSubmatch(d.String()); m != nil && !strings.HasPrefix(m[1], "dispatcher_kafka_") {
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
