package deploy

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	prometheus "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const alertsFile = "deploy/prometheus/alerts.yml"

// docsAddress stands in the rules where the address of docs/ belongs, which the project does not
// know.
const docsAddress = "https://dispatcher.example/docs"

// documented are the metrics of docs/metrics.md with their labels; durations are histograms.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{
		// Of Prometheus itself, and of its client's collectors.
		"up": nil, "ALERTS": {"alertname", "alertstate"}, "process_cpu_seconds_total": nil,
		"process_resident_memory_bytes": nil, "go_goroutines": nil,
		"dispatcher:code_lane": {"lane"}, // recorded by a rule
	}
	row := regexp.MustCompile("(?m)^\\| `(dispatcher_\\w+)(?:\\{([^}]*)\\})?` \\|")
	for _, found := range row.FindAllStringSubmatch(string(read(t, "docs/metrics.md")), -1) {
		names := regexp.MustCompile(`\w+`).FindAllString(found[2], -1)
		all[found[1]] = names
		all[found[1]+"_bucket"] = append(slices.Clone(names), "le")
		all[found[1]+"_sum"], all[found[1]+"_count"] = names, names
	}
	if len(all) < 150 {
		t.Fatalf("docs/metrics.md has %d metrics", len(all))
	}
	return all
}

// checkQuery reports metrics and labels of an expression that do not exist.
func checkQuery(t *testing.T, where, query string, known map[string][]string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(
		strings.ReplaceAll(query, "$__rate_interval", "5m"))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	has := func(metric, label string) bool {
		return slices.Contains(known[metric], label) || label == "job" || label == "instance"
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			if _, ok := known[n.Name]; !ok {
				t.Errorf("%s: docs/metrics.md has no %s", where, n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != labels.MetricName && !has(n.Name, m.Name) {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			for _, selector := range parser.ExtractSelectors(n.Expr) {
				metric := ""
				for _, m := range selector {
					if m.Name == labels.MetricName {
						metric = m.Value
					}
				}
				for _, label := range n.Grouping {
					if !has(metric, label) {
						t.Errorf("%s: %s has no label %s to group by", where, metric, label)
					}
				}
			}
		}
		return nil
	})
}

// alerts are the shipped rules without those that record.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	return slices.DeleteFunc(shipped(t), func(r rulefmt.Rule) bool { return r.Record != "" })
}

func shipped(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, alertsFile), false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestAlertsNameMetricsThatExist(t *testing.T) {
	known := documented(t)
	for _, rule := range shipped(t) {
		checkQuery(t, rule.Alert+rule.Record, rule.Expr, known)
	}
}

// TestEveryAlertHasItsEntry in the runbook, and every entry its alert.
func TestEveryAlertHasItsEntry(t *testing.T) {
	runbook := string(read(t, "docs/runbook.md"))
	entries := map[string]string{} // by name, up to the next heading
	for _, part := range strings.Split("\n"+runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		entries[name] = text
	}
	for _, rule := range alerts(t) {
		text, ok := entries[rule.Alert]
		severity := rule.Labels["severity"]
		if !ok || severity != "page" && severity != "ticket" ||
			!strings.HasPrefix(strings.TrimSpace(text), severity+". ") ||
			!strings.Contains(text, "**Look:**") || !strings.Contains(text, "**Do:**") {
			t.Errorf("docs/runbook.md has no entry %s that begins with %q and says what to look "+
				"at and what to do", rule.Alert, severity)
		}
		if want := docsAddress + "/runbook.md#" + strings.ToLower(rule.Alert); rule.
			Annotations["runbook_url"] != want || rule.Annotations["summary"] == "" {
			t.Errorf("%s needs a summary and the runbook_url %s", rule.Alert, want)
		}
		delete(entries, rule.Alert)
	}
	for name := range entries {
		t.Errorf("docs/runbook.md has an entry %s, and there is no such alert", name)
	}
}

func TestPrometheusTakesItsConfiguration(t *testing.T) {
	c, err := prometheus.LoadFile(filepath.Join(root, "deploy/prometheus/prometheus.yml"), false,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.RuleFiles) != 1 || filepath.Base(c.RuleFiles[0]) != filepath.Base(alertsFile) {
		t.Errorf("it reads the rules of %v", c.RuleFiles)
	}
	targets := 0
	p := project(t)
	for _, scrape := range c.ScrapeConfigs {
		for _, d := range scrape.ServiceDiscoveryConfigs {
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range regexp.MustCompile(`"(\w+):(\d+)"`).FindAllSubmatch(text, -1) {
				targets++
				ports := p.Services[string(found[1])].Ports
				if len(ports) == 0 {
					t.Errorf("no service of compose.yaml is %s", found[0])
				}
			}
		}
	}
	if targets != 2 {
		t.Errorf("it scrapes %d dispatchers", targets)
	}
}

// firing is when an alert fired for the first and for the last time.
type firing struct{ first, last time.Duration }

// fired evaluates the shipped rules over series, one time each step, and returns the alerts that
// fired, by name, job unless it is dispatcher, and, where they have one, channel, lane or webhook.
func fired(t *testing.T, series string, length, step time.Duration) map[string]firing {
	t.Helper()
	storage := promqltest.LoadedStorage(t, series)
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	manager := rules.NewManager(&rules.ManagerOptions{
		ExternalURL: &url.URL{},
		QueryFunc:   rules.EngineQueryFunc(engine, storage), Appendable: storage,
		Queryable: storage, Context: context.Background(),
		NotifyFunc:           func(context.Context, string, ...*rules.Alert) {},
		Logger:               slog.New(slog.DiscardHandler),
		NameValidationScheme: model.UTF8Validation,
		Parser:               parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false,
		filepath.Join(root, alertsFile))
	for _, err := range errs {
		t.Fatal(err)
	}
	out := map[string]firing{}
	for at := time.Duration(0); at <= length; at += step {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			group := groups[name]
			group.Eval(t.Context(), time.Unix(0, 0).Add(at))
			for _, rule := range group.AlertingRules() {
				if err := rule.LastError(); err != nil {
					t.Fatalf("%s: %v", rule.Name(), err)
				}
				for _, alert := range rule.ActiveAlerts() {
					if alert.State != rules.StateFiring {
						continue
					}
					key := rule.Name()
					if job := alert.Labels.Get("job"); job != "dispatcher" {
						key += " of job " + strconv.Quote(job)
					}
					for _, label := range []string{"channel", "lane", "webhook"} {
						if v := alert.Labels.Get(label); v != "" {
							key += " " + v
						}
					}
					f, before := out[key]
					if !before {
						f.first = at
					}
					f.last = at
					out[key] = f
				}
			}
		}
	}
	return out
}

// quiet is an hour of two instances at which nothing is wrong: 100 messages a second, each with its
// receipt, a few fallbacks and refusals.
const quiet = `
up{instance="a"} 1x240
up{instance="b"} 1x240
dispatcher_ready{check="database",instance="a"} 1x240
dispatcher_ready{check="database",instance="b"} 1x240
dispatcher_ready{check="routing",instance="a"} 1x240
dispatcher_ready{check="routing",instance="b"} 1x240
dispatcher_ready{check="kafka",instance="a"} 1x240
dispatcher_ready{check="kafka",instance="b"} 1x240
dispatcher_ready{check="channels",instance="a"} 1x240
dispatcher_ready{check="channels",instance="b"} 1x240
dispatcher_dispatch_records_total{lane="otp",result="fresh"} 0+1500x240
dispatcher_dispatch_records_total{lane="otp",result="dead"} 4x240
dispatcher_dispatch_attempts_total{channel="a",reason="first_choice"} 0+1450x240
dispatcher_dispatch_attempts_total{channel="b",reason="fallback"} 0+50x240
dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"} 0+1400x240
dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"} 0+50x240
dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"} 0+1x240
dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"} 0+50x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="otp",le="0.128"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="otp",le="32.768"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="otp",le="+Inf"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_count{lane="otp"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_count{lane="bulk"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="bulk",le="0.128"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="bulk",le="32.768"} 0+1500x240
dispatcher_dispatch_submit_delay_seconds_bucket{lane="bulk",le="+Inf"} 0+1500x240
dispatcher_dispatch_claim_seconds_bucket{le="0.032"} 0+10x240
dispatcher_dispatch_claim_seconds_bucket{le="2.048"} 0+10x240
dispatcher_dispatch_claim_seconds_bucket{le="+Inf"} 0+10x240
dispatcher_dispatch_waiting_messages{lane="otp"} 120x240
dispatcher_dispatch_waiting_for_messages{on="a",reason="in_flight"} 120x240
dispatcher_dispatch_waiting_for_messages{on="a",reason="no_slot"} 0x240
dispatcher_dispatch_oldest_waiting_seconds{lane="otp"} 0x240
dispatcher_dispatch_oldest_waiting_seconds{lane="bulk"} 0x240
dispatcher_dispatch_scheduled_messages{lane="otp"} 7x240
dispatcher_dispatch_paused_messages{lane="otp"} 0x240
dispatcher_dispatch_lane_paused{lane="otp",reason="operator"} 0x240
dispatcher_dispatch_lane_paused{lane="otp",reason="full"} 0x240
dispatcher_dispatch_routing_version{instance="a"} 4x240
dispatcher_dispatch_routing_version{instance="b"} 4x240
dispatcher_consumer_lag_records{lane="otp",instance="a"} 90x240
dispatcher_consumer_lag_records{lane="otp",instance="b"} 90x240
dispatcher_dispatch_channel_rate_ratio{channel="a"} 1x240
dispatcher_dispatch_limit_granted{channel="a",scope="",window="1d",unit="messages"} 0+300x240
dispatcher_dispatch_limit_max{channel="a",scope="",window="1d",unit="messages"} 100000x240
dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="enough"} 9x240
dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="unpaid"} 4x240
dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="low"} 0x240
dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="spent"} 0x240
dispatcher_steer_guard_trips_total{per="calling_code",action="pause"} 2x240
dispatcher_dispatch_trouble_total{where="steer"} 3x240
dispatcher_steer_agreed_share{route="default",channel="a",instance="a"} 0.97x240
dispatcher_steer_carried_share{route="default",channel="a",instance="a"} 0.966x240
dispatcher_steer_agreed_share{route="spare",channel="a",instance="a"} 0.5x240
dispatcher_dispatch_recovered_attempts_total 7x240
dispatcher_ledger_contract_cap_ratio{channel="a"} 0.79x240
dispatcher_dispatch_scoring_fallbacks_total{trouble="timeout"} 2x240
dispatcher_provider_breaker_state{channel="a"} 0x240
dispatcher_dispatch_channel_ready{channel="a",instance="a"} 1x240
dispatcher_dispatch_channel_ready{channel="a",instance="b"} 1x240
dispatcher_receive_closed_total{channel="a",state="delivered"} 0+1400x240
dispatcher_receive_closed_total{channel="a",state="no_receipt"} 0+20x240
dispatcher_receive_callbacks_total{channel="a",verdict="booked"} 0+1400x240
dispatcher_receive_callbacks_total{channel="a",verdict="forged"} 9x240
dispatcher_invariant_violations{guarantee="2",invariant="one_submit"} 0x240
dispatcher_invariant_checked_timestamp_seconds 0+15x240
dispatcher_statushook_oldest_event_seconds{webhook="shop"} 3x240
dispatcher_statushook_events_total{webhook="shop",result="delivered"} 0+1400x240
dispatcher_statushook_events_total{webhook="shop",result="expired"} 2x240
dispatcher_ledger_partitions_ahead 2x240
dispatcher_ledger_unclosed_dates 0x240
dispatcher_ledger_oldest_payloads_seconds 690000+15x240
dispatcher_ledger_retention_seconds{what="payloads"} 604800x240
`

// replaced is the quiet hour of a job, with other samples of the series whose names begin with a
// key of changes.
func replaced(t *testing.T, job string, changes map[string]string) string {
	t.Helper()
	text := strings.TrimSpace(quiet)
	for series, samples := range changes {
		line := regexp.MustCompile(`(?m)^(` + regexp.QuoteMeta(series) + `\S*) .*$`)
		if !line.MatchString(text) {
			t.Fatalf("there is no series %s", series)
		}
		text = line.ReplaceAllString(text, "${1} "+samples)
	}
	text = regexp.MustCompile(`(?m)^(\w+) `).ReplaceAllString(text, "$1{} ")
	return regexp.MustCompile(`(?m)^(\w+){`).ReplaceAllString(text, "  $1{job=\""+job+"\",") + "\n"
}

// TestEachAlertFires for its fault and for no other, also while the same Prometheus scrapes another
// dispatcher at which nothing is wrong.
func TestEachAlertFires(t *testing.T) {
	const none = "_x240" // a series that is not there
	cases := map[string]struct {
		changes map[string]string
		want    []string // names with channel or lane
	}{
		"": {nil, nil},
		"DispatcherDown": {map[string]string{"up": "1x40 0x200"},
			[]string{"DispatcherDown", "DispatcherInstanceDown"}},
		"DispatcherInstanceDown": {map[string]string{`up{instance="b"`: "1x40 0x200"},
			[]string{"DispatcherInstanceDown"}},
		"DispatcherDatabaseAway": {map[string]string{
			`dispatcher_ready{check="database"`: "1x40 0x200"}, []string{"DispatcherDatabaseAway"}},
		// It keeps its partitions, so their messages wait.
		"one instance without its database": {map[string]string{
			`dispatcher_ready{check="database",instance="b"`: "1x40 0x200"},
			[]string{"DispatcherDatabaseAway"}},
		"the database fails over": {map[string]string{
			`dispatcher_ready{check="database"`: "1x40 0x4 1x196"}, nil},
		"DispatcherKafkaAway": {map[string]string{
			`dispatcher_ready{check="kafka"`: "1x40 0x200"}, []string{"DispatcherKafkaAway"}},
		// The others read its partitions.
		"one instance without Kafka": {map[string]string{
			`dispatcher_ready{check="kafka",instance="b"`: "1x40 0x200"}, nil},
		// An instance reads Kafka only after it has reached the database.
		"started without a database": {map[string]string{
			`dispatcher_ready{check="database"`: "1x40 0x200",
			`dispatcher_ready{check="routing"`:  "1x40 0x200",
			`dispatcher_ready{check="kafka"`:    "1x40 0x200"}, []string{"DispatcherDatabaseAway"}},
		"Kafka is away and one instance has no routing": {map[string]string{
			`dispatcher_ready{check="routing",instance="b"`: "1x40 0x200",
			`dispatcher_ready{check="kafka"`:                "1x40 0x200"},
			[]string{"DispatcherKafkaAway"}},
		"DispatcherNothingAccepted": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:  "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:  "0x240",
		}, []string{"DispatcherNothingAccepted"}},
		"a lane is full for hours": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:  "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:  "0x240",
			`dispatcher_dispatch_records_total{lane="otp",result="fresh"`:       "0+10x40 400x200",
			`dispatcher_dispatch_lane_paused{lane="otp",reason="full"`:          "0x40 1x200",
		}, []string{"DispatcherLanePaused otp", "DispatcherNothingAccepted"}},
		"a limit is used up": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`:  "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`:  "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:   "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:   "0x240",
			`dispatcher_dispatch_waiting_for_messages{on="a",reason="in_flight"`: "120x40 0x200",
			`dispatcher_dispatch_waiting_for_messages{on="a",reason="no_slot"`:   "0x40 0+1500x200",
		}, nil},
		"a lane is full behind a limit": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`:  "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`:  "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:   "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:   "0x240",
			`dispatcher_dispatch_records_total{lane="otp",result="fresh"`:        "0+10x40 400x200",
			`dispatcher_dispatch_lane_paused{lane="otp",reason="full"`:           "0x40 1x200",
			`dispatcher_dispatch_waiting_for_messages{on="a",reason="in_flight"`: "120x40 0x200",
			`dispatcher_dispatch_waiting_for_messages{on="a",reason="no_slot"`:   "0x40 50000x200",
		}, []string{"DispatcherLanePaused otp"}},
		"a limit is used up and the channels fail": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:  "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:  "0x240",
			`dispatcher_dispatch_waiting_for_messages{on="a",reason="no_slot"`:  "0x40 50000x200",
		}, []string{"DispatcherNothingAccepted"}},
		"only scheduled messages come in": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:  "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:  "0x240",
			"dispatcher_dispatch_scheduled_messages":                            "7x40 7+1500x200",
		}, nil},
		"only paused messages come in": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="b",outcome="accepted"`: "0+10x40 400x200",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`:  "0x240",
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`:  "0x240",
			"dispatcher_dispatch_paused_messages":                               "0x40 0+1500x200",
		}, nil},
		"DispatcherLaneStuck": {map[string]string{
			`dispatcher_dispatch_submit_delay_seconds_count{lane="bulk"`: "0+1500x40 60000x200",
			`dispatcher_dispatch_oldest_waiting_seconds{lane="bulk"`:     "0x40 0+15x200"},
			[]string{"DispatcherLaneStuck bulk"}},
		"DispatcherCodesLate": {map[string]string{
			`dispatcher_dispatch_submit_delay_seconds_bucket{lane="otp",le="0.128"`: "0+1400x240",
		}, []string{"DispatcherCodesLate otp"}},
		"another lane is late": {map[string]string{
			`dispatcher_dispatch_submit_delay_seconds_bucket{lane="bulk",le="0.128"`: "0+1400x240",
			`dispatcher_dispatch_oldest_waiting_seconds{lane="bulk"`:                 "0x40 0+15x200",
		}, nil},
		"DispatcherWaitingMany": {map[string]string{
			"dispatcher_dispatch_waiting_messages": "0+100x240"},
			[]string{"DispatcherWaitingMany otp"}},
		"DispatcherCodesWait": {map[string]string{
			`dispatcher_dispatch_oldest_waiting_seconds{lane="otp"`: "0x40 0+15x200"},
			[]string{"DispatcherCodesWait otp"}},
		"DispatcherLag": {map[string]string{"dispatcher_consumer_lag_records": "0+100x240"},
			[]string{"DispatcherLag otp"}},
		"DispatcherLanePaused": {map[string]string{
			"dispatcher_dispatch_lane_paused": "0x40 1x200"},
			[]string{"DispatcherLanePaused otp"}},
		"DispatcherRoutingDiffers": {map[string]string{
			`dispatcher_dispatch_routing_version{instance="a"`: "4x40 5x200"},
			[]string{"DispatcherRoutingDiffers"}},
		"DispatcherDeadLetters": {map[string]string{
			`dispatcher_dispatch_records_total{lane="otp",result="dead"`: "4x100 5x140"},
			[]string{"DispatcherDeadLetters otp"}},
		"DispatcherBreakerOpen": {map[string]string{
			"dispatcher_provider_breaker_state": "0x40 2x200"},
			[]string{"DispatcherBreakerOpen a"}},
		"DispatcherChannelNotReady": {map[string]string{
			`dispatcher_dispatch_channel_ready{channel="a",instance="b"`: "1x40 0x200"},
			[]string{"DispatcherChannelNotReady a"}},
		"not ready because of its breaker": {map[string]string{
			"dispatcher_dispatch_channel_ready": "1x40 0x200",
			"dispatcher_provider_breaker_state": "0x40 2x200"},
			[]string{"DispatcherBreakerOpen a"}},
		"not ready for a moment": {map[string]string{
			"dispatcher_dispatch_channel_ready": "1x40 0x8 1x192"}, nil},
		"DispatcherFallbacksMany": {map[string]string{
			`dispatcher_dispatch_attempts_total{channel="b"`: "0+600x240"},
			[]string{"DispatcherFallbacksMany"}},
		"DispatcherShareMissed": {map[string]string{
			"dispatcher_steer_carried_share": "0.966x40 0.7x200"},
			[]string{"DispatcherShareMissed a"}},
		"a share that is off for ten minutes": {map[string]string{
			"dispatcher_steer_carried_share": "0.966x40 0.7x40 0.966x160"}, nil},
		"a small share that is missed by half": {map[string]string{
			`dispatcher_steer_agreed_share{route="default"`:  "0.08x240",
			`dispatcher_steer_carried_share{route="default"`: "0.08x40 0.03x200"},
			[]string{"DispatcherShareMissed a"}},
		"a share too small to be judged": {map[string]string{
			`dispatcher_steer_agreed_share{route="default"`:  "0.04x240",
			`dispatcher_steer_carried_share{route="default"`: "0.04x40 0x200"}, nil},
		"a share above the agreed one": {map[string]string{
			`dispatcher_steer_agreed_share{route="default"`:  "0.5x240",
			`dispatcher_steer_carried_share{route="default"`: "0.5x40 0.9x200"}, nil},
		"a drained channel": {map[string]string{
			"dispatcher_steer_carried_share":                "0.966x40 0x200",
			`dispatcher_dispatch_channel_ready{channel="a"`: none}, nil},
		"a route that carries too little to count": {map[string]string{
			"dispatcher_steer_carried_share": none}, nil},
		"DispatcherUnknownMany": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="unknown"`: "0+30x240"},
			[]string{"DispatcherUnknownMany a"}},
		"DispatcherChannelRefuses": {map[string]string{
			`dispatcher_dispatch_outcomes_total{channel="a",outcome="refused"`: "0+500x240"},
			[]string{"DispatcherChannelRefuses a"}},
		"DispatcherChannelThrottled": {map[string]string{
			"dispatcher_dispatch_channel_rate_ratio": "1x40 0.25x200"},
			[]string{"DispatcherChannelThrottled a"}},
		"DispatcherDayLimitNearlyUsed": {map[string]string{
			"dispatcher_dispatch_limit_granted": "80000+100x240"},
			[]string{"DispatcherDayLimitNearlyUsed a"}},
		"DispatcherBudgetLow": {map[string]string{
			`dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="low"`: "0x40 1x200"},
			[]string{"DispatcherBudgetLow"}},
		"a spent budget": {map[string]string{
			`dispatcher_dispatch_budgets{channel="",scope="tenant:*",level="spent"`: "0x40 2x200"},
			[]string{"DispatcherBudgetLow"}},
		"DispatcherGuardTripped": {map[string]string{
			"dispatcher_steer_guard_trips_total": "2x40 3x200"},
			[]string{"DispatcherGuardTripped"}},
		"DispatcherReceiptsMissing": {map[string]string{
			`dispatcher_receive_closed_total{channel="a",state="no_receipt"`: "0+700x240"},
			[]string{"DispatcherReceiptsMissing a"}},
		"DispatcherCallbacksRefused": {map[string]string{
			`dispatcher_receive_callbacks_total{channel="a",verdict="forged"`: "0+1x240"},
			[]string{"DispatcherCallbacksRefused a"}},
		"DispatcherStatusWebhookLate": {map[string]string{
			"dispatcher_statushook_oldest_event_seconds": "3x40 0+15x200"},
			[]string{"DispatcherStatusWebhookLate shop"}},
		"status events are left out": {map[string]string{
			`dispatcher_statushook_events_total{webhook="shop",result="expired"`: "2x40 2+1x200"},
			[]string{"DispatcherStatusWebhookLate shop"}},
		"a status webhook is away for a moment": {map[string]string{
			"dispatcher_statushook_oldest_event_seconds": "3x40 0+15x40 3x160"}, nil},
		"DispatcherScoringFails": {map[string]string{
			"dispatcher_dispatch_scoring_fallbacks_total": "0+1x240"},
			[]string{"DispatcherScoringFails"}},
		"DispatcherGuaranteeViolated": {map[string]string{
			"dispatcher_invariant_violations": "0x100 1x140"},
			[]string{"DispatcherGuaranteeViolated"}},
		"DispatcherGuaranteesUnchecked": {map[string]string{
			"dispatcher_invariant_checked_timestamp_seconds": "-9000x240"},
			[]string{"DispatcherGuaranteesUnchecked"}},
		"DispatcherTrouble": {map[string]string{
			"dispatcher_dispatch_trouble_total": "0+5x240"}, []string{"DispatcherTrouble"}},
		"DispatcherClaimsSlow": {map[string]string{
			`dispatcher_dispatch_claim_seconds_bucket{le="0.032"`: "0+9x240",
		}, []string{"DispatcherClaimsSlow"}},
		"DispatcherAttemptsRecovered": {map[string]string{
			"dispatcher_dispatch_recovered_attempts_total": "7x100 30x140"},
			[]string{"DispatcherAttemptsRecovered"}},
		"DispatcherDaysMissing": {map[string]string{"dispatcher_ledger_partitions_ahead": "0x240"},
			[]string{"DispatcherDaysMissing"}},
		"DispatcherDayUnclosed": {map[string]string{"dispatcher_ledger_unclosed_dates": "1x240"},
			[]string{"DispatcherDayUnclosed"}},
		"DispatcherCapNearlyUsed": {map[string]string{
			"dispatcher_ledger_contract_cap_ratio": "0.79x40 0.8x200"},
			[]string{"DispatcherCapNearlyUsed a"}},
		"DispatcherNumbersKeptTooLong": {map[string]string{
			"dispatcher_ledger_oldest_payloads_seconds": "780000+15x245"},
			[]string{"DispatcherNumbersKeptTooLong"}},
	}
	for _, rule := range alerts(t) {
		if _, ok := cases[rule.Alert]; !ok {
			t.Errorf("no case for %s", rule.Alert)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := slices.Sorted(maps.Keys(fired(t, "load 15s\n"+
				replaced(t, "dispatcher", c.changes)+replaced(t, "messaging/other-dispatcher",
				map[string]string{"dispatcher_dispatch_routing_version": "9x240"}),
				time.Hour, time.Minute)))
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("fired %q, want %q", got, c.want)
			}
		})
	}
}

// TestDispatcherDownWithoutATarget: Prometheus has no dispatcher to scrape, but other programs.
func TestDispatcherDownWithoutATarget(t *testing.T) {
	got := fired(t, "load 15s\n  up{job=\"dispatcher/postgres\"} 1x240\n", time.Hour, time.Minute)
	if _, ok := got[`DispatcherDown of job ""`]; !ok || len(got) != 1 {
		t.Errorf("fired %v", got)
	}
}

// TestTheQuietHourShowsWhatEachAlertAsks. An alert that stays silent because its series are missing
// would prove nothing.
func TestTheQuietHourShowsWhatEachAlertAsks(t *testing.T) {
	for _, rule := range alerts(t) {
		for name := range asked(t, rule.Expr) {
			if name != "dispatcher:code_lane" && !strings.Contains(quiet, "\n"+name+"{") &&
				!strings.Contains(quiet, "\n"+name+" ") {
				t.Errorf("%s asks for %s, which the quiet hour does not have", rule.Alert, name)
			}
		}
	}
}

// incident is what a dispatcher really showed; .ci/deploy/record.py records it.
const incident = ".ci/deploy/testdata/incident.txt"

const incidentLength = 71 * 15 * time.Second

// recorded are its series, with the one that Prometheus makes itself.
func recorded(t *testing.T) string {
	t.Helper()
	return string(read(t, incident)) + "  up{job=\"dispatcher\",instance=\"a\"} 1x71\n"
}

// notRecorded are the series of alerts that the incident lacks, and why.
var notRecorded = map[string]string{
	"up":                   "Prometheus makes it; the test adds it",
	"dispatcher:code_lane": "a rule records it",
	"dispatcher_dispatch_scoring_fallbacks_total": "no route has a scoring rule that could fail",
	"dispatcher_dispatch_trouble_total":           "one for each kind of failure: none happened",
}

// TestTheIncidentShowsWhatEachAlertAsks, with the labels that docs/metrics.md names. An alert that
// stays silent because its series are missing would prove nothing.
func TestTheIncidentShowsWhatEachAlertAsks(t *testing.T) {
	known, recorded := documented(t), map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^  (\w+)\{(.*?)\} `).FindAllSubmatch(
		read(t, incident), -1) {
		name, has := string(found[1]), map[string]bool{}
		recorded[name] = true
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllSubmatch(found[2], -1) {
			has[string(label[1])] = true
		}
		delete(has, "job")
		delete(has, "instance")
		got, want := slices.Sorted(maps.Keys(has)), slices.Sorted(slices.Values(known[name]))
		if !slices.Equal(got, want) {
			t.Errorf("%s has the labels %q, want %q", name, got, want)
		}
	}
	all := map[string]bool{}
	for _, rule := range alerts(t) {
		for name := range asked(t, rule.Expr) {
			all[name] = true
			if _, listed := notRecorded[name]; recorded[name] == listed {
				t.Errorf("%s asks for %s: it is recorded: %t, and listed as not recorded: %t",
					rule.Alert, name, recorded[name], listed)
			}
		}
	}
	for name := range notRecorded {
		if !all[name] {
			t.Errorf("no alert asks for %s", name)
		}
	}
}

// TestAlertsOfARecordedIncident evaluates the rules over what a dispatcher really showed while
// first one and then all of its carriers were away.
func TestAlertsOfARecordedIncident(t *testing.T) {
	got := fired(t, recorded(t), incidentLength, 15*time.Second)
	for name, f := range got {
		t.Logf("%s from %s to %s", name, f.first, f.last)
	}
	// What went wrong when, and until when its alert has to fire.
	const premium, poison, all, back = 180, 295, 540, 780
	for name, want := range map[string]struct{ cause, from, to time.Duration }{
		"DispatcherBreakerOpen premium": {premium, 3 * 60, back},
		"DispatcherFallbacksMany":       {premium, 8 * 60, back},
		"DispatcherDeadLetters bulk":    {poison, 30, poison + 240},
		"DispatcherBreakerOpen cheap":   {all, 3 * 60, back},
		"DispatcherNothingAccepted":     {all, 4 * 60, back - 15},
		"DispatcherCodesLate otp":       {all, 5 * 60, back},
		"DispatcherCodesWait otp":       {all, 4 * 60, back},
	} {
		f, ok := got[name]
		if !ok || f.first <= want.cause*time.Second ||
			f.first > (want.cause+want.from)*time.Second || f.last < want.to*time.Second {
			t.Errorf("%s fires from %s to %s", name, f.first, f.last)
		}
		// The others look back over some minutes.
		if strings.HasPrefix(name, "DispatcherBreaker") && f.last > (back+90)*time.Second {
			t.Errorf("%s still fires at %s", name, f.last)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s fires, and nothing of its kind went wrong", name)
	}
}
