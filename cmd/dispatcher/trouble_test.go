package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestAWrongBrokerPasswordIsNamedAndNotShown(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "shop", "right"),
		kfake.SeedTopics(1, "sms.transactional"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for password, want := range map[string]int{"right": exitOK, "hush": exitUsage} {
		got := dispatcher(t, "", []string{
			"DISPATCHER_KAFKA_BROKERS=" + cluster.ListenAddrs()[0], "DISPATCHER_KAFKA_SASL_MECHANISM=SCRAM-SHA-256",
			"DISPATCHER_KAFKA_SASL_USER=shop", "DISPATCHER_KAFKA_SASL_PASSWORD_FILE=" + write(t, "kafka.secret", password+"\n"),
		}, "send", "--to", "+447700900123", "--text", "x")
		if got.code != want || strings.Contains(got.err, "hush") || strings.Count(got.err, "\n") > 1 {
			t.Errorf("%s: %+v", password, got)
		}
		if want != exitOK && !strings.Contains(got.err, "refuse the user or the password: check DISPATCHER_KAFKA_SASL_MECHANISM") {
			t.Errorf("%+v", got)
		}
	}
}
