package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger/ledgertest"
)

// states runs "topics create" and returns the state of each topic.
func states(t *testing.T, env []string, args ...string) (map[string]string, result) {
	t.Helper()
	got := dispatcher(t, "", env,
		append([]string{"topics", "create", "--format", "json"}, args...)...)
	var printed struct{ Topics []topicState }
	if err := json.Unmarshal([]byte(got.out), &printed); err != nil {
		t.Fatalf("%v: got %+v", err, got)
	}
	found := map[string]string{}
	for _, topic := range printed.Topics {
		found[topic.Topic] = topic.State
	}
	return found, got
}

// all gives every topic the same state, with exceptions.
func all(state string, but map[string]string) map[string]string {
	want := map[string]string{}
	for _, topic := range []string{
		"codes", "orders", "receipts", "sms.status", "sms.dead", "sms.inbound",
	} {
		want[topic] = state
	}
	maps.Copy(want, but)
	return want
}

func TestTopicsCreateMakesWhatTheRoutingNeedsOnceAndChangesNothing(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "orders") // with 2 partitions
	env := []string{setting, "DISPATCHER_ROUTING_FILE=" + write(t, "routing.yaml", testRouting)}
	here := map[string]string{"orders": "exists"}
	for i, step := range []struct {
		args []string
		want map[string]string
		code int
		says string
	}{
		{[]string{"--dry-run"}, all("missing", here), exitOK, ""},
		{[]string{"--dry-run", "--partitions", "2"}, all("missing", here), exitOK, ""},
		{
			[]string{"--partitions", "3", "--replication-factor", "1"},
			all("created", map[string]string{"orders": "differs"}), exitFailed,
			"1 of 6 topics are not as the flags want them",
		},
		{
			[]string{"--partitions", "3", "--replication-factor", "1"},
			all("exists", map[string]string{"orders": "differs"}), exitFailed, "1 of 6",
		},
		{nil, all("exists", nil), exitOK, ""},
		{[]string{"--replication-factor", "2"}, all("differs", nil), exitFailed, "6 of 6"},
	} {
		found, got := states(t, env, step.args...)
		if !maps.Equal(found, step.want) || got.code != step.code ||
			!strings.Contains(got.err, step.says) {
			t.Errorf("step %d: %v, code %d, %s; want %v", i, found, got.code, got.err, step.want)
		}
	}
	for topic, partitions := range map[string]int{"codes": 3, "orders": 2, "sms.status": 3} {
		if n := partitionsOf(t, address, topic); n != partitions {
			t.Errorf("%s has %d partitions, not %d", topic, n, partitions)
		}
	}
}

func partitionsOf(t *testing.T, address, topic string) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return len(topics[topic].Partitions)
}

// Before its first start a dispatcher has a database without schema. Then the lanes are those of
// the file, later those of the stored routing.
func TestTopicsCreateTakesTheRoutingInForce(t *testing.T) {
	t.Parallel()
	setting, _ := broker(t)
	url := ledgertest.URL(t)
	other := strings.ReplaceAll(testRouting, "codes", "other")
	env := []string{setting, "DISPATCHER_ROUTING_FILE=" + write(t, "routing.yaml", other)}
	for name, database := range map[string]string{
		"no schema": ledgertest.Empty(t), "no routing": url,
	} {
		found, _ := states(t, append(env, "DISPATCHER_POSTGRES_URL="+database), "--dry-run")
		if found["other"] != "missing" {
			t.Errorf("%s: got %v", name, found)
		}
	}
	openSeeded(t, url)
	found, _ := states(t, append(env, "DISPATCHER_POSTGRES_URL="+url), "--dry-run")
	if found["codes"] != "missing" || found["other"] != "" {
		t.Errorf("got %v", found)
	}
	named := append(env, "DISPATCHER_POSTGRES_URL="+url)
	found, _ = states(t, named, "--dry-run", "--routing", write(t, "other.yaml", other))
	if found["codes"] != "" || found["other"] != "missing" {
		t.Errorf("with --routing: %v", found)
	}
	found, _ = states(t, []string{setting, "DISPATCHER_STATUS_TOPIC=s"}, "--dry-run")
	if found["sms.bulk"] != "missing" || found["s"] != "missing" {
		t.Errorf("without a routing: %v", found)
	}
}

func TestTopicsCreateRefusesNumbersThatMeanNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--partitions", "0"}, {"--replication-factor", "0"}, {"--replication-factor", "-1"},
	} {
		got := dispatcher(t, "", nil, append([]string{"topics", "create"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, "must be at least 1") {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error",
				args, got, exitUsage, "must be at least 1")
		}
	}
}
