package app

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config"
)

// TestBrokersAreReachedOverTLSUnderAnAuthorityOfTheirOwn uses the certificate of httptest for
// loopback, which the system does not trust.
func TestBrokersAreReachedOverTLSUnderAnAuthorityOfTheirOwn(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1),
		kfake.TLS(&tls.Config{Certificates: web.TLS.Certificates}))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	for name, tc := range map[string]struct {
		settings config.Settings
		reached  bool
	}{
		"with the authority":    {config.Settings{KafkaTLS: true, KafkaCA: trusted}, true},
		"without the authority": {config.Settings{KafkaTLS: true}, false},
		"without TLS":           {config.Settings{}, false},
	} {
		tc.settings.KafkaBrokers = broker.ListenAddrs()
		options, err := Connection(&tc.settings).Options()
		if err != nil {
			t.Fatal(err)
		}
		client, err := kgo.NewClient(append(options, kgo.RetryTimeout(0))...)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context()); (err == nil) != tc.reached {
			t.Errorf("%s: got error %v", name, err)
		}
		client.Close()
	}
}
