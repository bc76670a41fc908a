package app

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestEveryMetricIsInTheGuide: docs/metrics.md names each metric of ours with its labels, and no
// others. Metrics of the Kafka client are not in it.
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
	webhook := withStatusWebhook(t, "http://127.0.0.1:1")
	s := newStageWith(t, oneChannel, func(o *Options) {
		webhook(o)
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
	form := regexp.MustCompile(
		`fqName: "(dispatcher_\w+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	for d := range descriptions {
		if m := form.FindStringSubmatch(d.String()); m != nil &&
			!strings.HasPrefix(m[1], "dispatcher_kafka_") {
			registered = append(registered, m[1]+labelWords(m[2], m[3]))
		}
	}
	slices.Sort(documented)
	slices.Sort(registered)
	lintNames(t, registered)
	if registered = slices.Compact(registered); !slices.Equal(documented, registered) {
		for _, name := range registered {
			if !slices.Contains(documented, name) {
				t.Errorf("not in the guide: %s", name)
			}
		}
		for _, name := range documented {
			if !slices.Contains(registered, name) {
				t.Errorf("in the guide, but not a metric: %s", name)
			}
		}
	}
}

// lintNames runs the linter of Prometheus on the names of all metrics, including those without a
// value.
func lintNames(t *testing.T, names []string) {
	t.Helper()
	var page bytes.Buffer
	for _, name := range slices.Compact(slices.Clone(names)) {
		name, _, _ = strings.Cut(name, "{")
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		fmt.Fprintf(&page, "# HELP %s Help.\n# TYPE %s %s\n%s 1\n", name, name, kind, name)
	}
	lint(t, &page)
}

func lint(t *testing.T, page io.Reader) {
	t.Helper()
	problems, err := promlint.New(page).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// labelWords returns the names of constant labels, such as a="b", and of variable ones, as the
// guide lists them.
func labelWords(constant, variable string) string {
	var names []string
	for pair := range strings.SplitSeq(constant, ",") {
		if name, _, ok := strings.Cut(pair, "="); ok {
			names = append(names, name)
		}
	}
	if variable != "" {
		names = append(names, strings.Split(variable, ",")...)
	}
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// scraped returns the page of metrics and the values in it, by name with labels.
func (s *stage) scraped() (page []byte, values map[string]float64) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet,
		s.app.URL()+"/metrics", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if page, err = io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatal(answer.Status, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		s.t.Fatal(err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()},
		slices.Collect(maps.Values(families))...)
	if err != nil {
		s.t.Fatal(err)
	}
	values = map[string]float64{}
	for _, sample := range samples {
		values[sample.Metric.String()] = float64(sample.Value)
	}
	return page, values
}

// TestMetricsShowTheStateOfTheProcess: the page parses and passes the linter of Prometheus. It
// has the state of breakers before they change, the lag, the version, codes of the provider and the
// number of waiting messages.
func TestMetricsShowTheStateOfTheProcess(t *testing.T) {
	t.Parallel()
	const document = `
channels: {good: {{ONE}}, sick: {{TWO}}}
routes: [{name: default, weights: {good: 1, sick: 3}}]
`
	const day = 24 * time.Hour
	s := newStageWith(t, document, func(o *Options) {
		o.Settings.IDRetention, o.Settings.PayloadRetention = 8*day, 9*day
		o.Settings.LedgerRetention = 500 * day
	}, nil)
	_, values := s.scraped()
	for what, days := range map[string]float64{"ids": 8, "payloads": 9, "facts": 500} {
		name := `dispatcher_ledger_retention_seconds{what="` + what + `"}`
		if got := values[name]; got != days*day.Seconds() {
			t.Errorf("%s is %v, want %v days", name, got, days)
		}
	}
	for _, channel := range []string{"good", "sick"} {
		for _, name := range []string{
			`dispatcher_provider_breaker_state{channel="` + channel + `"}`,
			`dispatcher_dispatch_attempts_total{channel="` + channel + `", reason="no_receipt"}`,
			`dispatcher_dispatch_outcomes_total{channel="` + channel + `", outcome="unknown"}`,
			`dispatcher_dispatch_outcomes_total{channel="` + channel + `", outcome="unfit"}`,
			`dispatcher_dispatch_records_total{lane="transactional", result="dead"}`,
			`dispatcher_dispatch_ambiguities_total{verdict="final"}`,
		} {
			if state, ok := values[name]; !ok || state != 0 {
				t.Errorf("%s is %v, %v before the first message", name, state, ok)
			}
		}
	}
	s.carriers["TWO"].SetBehaviour(smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: pdu.StatusSysErr})
	s.publish(30)
	s.settled()
	later := fmt.Sprintf(`{"id":"later","to":"+447700900001","text":"Hello","send_at":%q}`,
		time.Now().Add(time.Hour).Format(time.RFC3339))
	if err := s.producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte(later)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		`dispatcher_consumer_lag_records{lane="transactional"}`:                        0,
		`dispatcher_consumer_joined{lane="transactional"}`:                             1,
		`dispatcher_dispatch_routing_version`:                                          1,
		`dispatcher_dispatch_channel_ready{channel="good"}`:                            1,
		`dispatcher_dispatch_scheduled_messages{lane="transactional"}`:                 1,
		`dispatcher_dispatch_paused_messages{lane="transactional"}`:                    0,
		`dispatcher_dispatch_oldest_waiting_seconds{lane="transactional"}`:             0,
		`dispatcher_dispatch_lane_paused{lane="transactional", reason="operator"}`:     0,
		`dispatcher_dispatch_lane_paused{lane="transactional", reason="full"}`:         0,
		`dispatcher_steer_agreed_share{channel="sick", route="default"}`:               0.75,
		`dispatcher_steer_effective_share{channel="sick", route="default"}`:            0.75,
		`dispatcher_build_info{goversion="` + runtime.Version() + `", version="test"}`: 1,
	}
	var page []byte
	s.until("the page tells it", func() bool {
		page, values = s.scraped()
		for name, value := range want {
			if got, ok := values[name]; !ok || got != value {
				return false
			}
		}
		return true
	})
	const refused = `dispatcher_dispatch_codes_total{channel="sick", code="0x00000008", outcome="refused"}`
	if values[refused] < 1 {
		t.Errorf("%s is %v", refused, values[refused])
	}
	lint(t, bytes.NewReader(page))

	s.carriers["ONE"].Close()
	s.until("the channel is shown as not ready", func() bool {
		_, values = s.scraped()
		ready, shown := values[`dispatcher_dispatch_channel_ready{channel="good"}`]
		return shown && ready == 0
	})
}
