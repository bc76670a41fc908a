package smpp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// hosts holds servers by address and records the dials. A server that is away refuses them.
type hosts struct {
	servers map[string]*smpptest.Server
	away    map[string]bool
	dials   []string
}

func newHosts(behaviours map[string]smpptest.Behaviour) *hosts {
	h := &hosts{servers: map[string]*smpptest.Server{}, away: map[string]bool{}}
	for address, b := range behaviours {
		h.servers[address] = smpptest.New(smpptest.Config{Behaviour: b})
	}
	return h
}

// dial is called by one bind at a time.
func (h *hosts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.dials = append(h.dials, address)
	if h.away[address] {
		return nil, net.ErrClosed
	}
	return pipeTo(h.servers[address])(ctx, network, address)
}

func (h *hosts) close() {
	for _, srv := range h.servers {
		srv.Close()
	}
}

// startAt returns a client with one bind and these addresses.
func (h *hosts) startAt(t *testing.T, addresses ...string) *Client {
	t.Helper()
	c, err := New(Config{Addresses: addresses, SystemID: "acme", Dial: h.dial})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// TestAHostThatBindsAndDropsIsAvoided: a load balancer in front of a dead host behaves like this.
func TestAHostThatBindsAndDropsIsAvoided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(map[string]smpptest.Behaviour{"bad:1": {}, "good:1": {}})
		c := h.startAt(t, "bad:1", "good:1")
		<-time.After(20 * time.Millisecond)
		h.servers["bad:1"].CutAll()
		<-time.After(time.Hour) // inside the bubble
		if want := []string{"bad:1", "good:1"}; !slices.Equal(h.dials, want) {
			t.Errorf("dialled %v, want %v", h.dials, want)
		}
		closeIn(t, c)
		h.close()
	})
}

// TestASilentOrRefusingHostIsAvoided, however long the bind lasted.
func TestASilentOrRefusingHostIsAvoided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviour smpptest.Behaviour
		messages  int
		cut       bool
	}{
		"enquire_link unanswered": {smpptest.Behaviour{IgnoreEnquireLink: true}, 0, false},
		"unhealthy when it drops": {smpptest.Behaviour{ErrorEvery: 1}, maxFaults, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHosts(map[string]smpptest.Behaviour{"bad:1": {}, "good:1": {}})
				client := h.startAt(t, "bad:1", "good:1")
				<-time.After(10 * time.Minute)
				h.servers["bad:1"].SetBehaviour(c.behaviour)
				for i := range c.messages {
					send(client, submission(i))
				}
				if c.cut {
					h.servers["bad:1"].CutAll()
				}
				<-time.After(time.Hour)
				if want := []string{"bad:1", "good:1"}; !slices.Equal(h.dials, want) {
					t.Errorf("dialled %v, want %v", h.dials, want)
				}
				closeIn(t, client)
				h.close()
			})
		})
	}
}

// TestABindReturnsToItsFirstAddress: it moved while the host was down, and returns after a good
// session.
func TestABindReturnsToItsFirstAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(map[string]smpptest.Behaviour{"home:1": {}, "other:1": {}})
		c := h.startAt(t, "home:1", "other:1")
		<-time.After(10 * time.Minute)
		h.away["home:1"] = true
		h.servers["home:1"].CutAll()
		<-time.After(10 * time.Minute)
		h.away["home:1"] = false
		<-time.After(10 * time.Minute)
		h.servers["other:1"].Unbind()
		<-time.After(10 * time.Minute)
		if want := []string{"home:1", "home:1", "other:1", "home:1"}; !slices.Equal(h.dials, want) {
			t.Errorf("dialled %v, want %v", h.dials, want)
		}
		closeIn(t, c)
		h.close()
	})
}

func TestBackoffGrowsBetweenItsBounds(t *testing.T) {
	t.Parallel()
	low, high := 500*time.Millisecond, 30*time.Second
	for failures, want := range map[int]time.Duration{
		0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 5: high, 1000: high,
	} {
		if got := backoff(failures, low, high, 1); got != want {
			t.Errorf("ceiling after %d failures is %v, want %v", failures, got, want)
		}
		if got := backoff(failures, low, high, 0); got != low {
			t.Errorf("floor after %d failures is %v, want %v", failures, got, low)
		}
	}
	tier.Check(t, func(t *rapid.T) {
		low := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "low"))
		high := low + time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "span"))
		d := backoff(rapid.IntRange(0, 1<<40).Draw(t, "failures"), low, high,
			rapid.Float64Range(0, 0.999999).Draw(t, "random"))
		if d < low || d > high {
			t.Fatalf("%v is outside %v to %v", d, low, high)
		}
	})
}

// authority is a self-signed certificate for 127.0.0.1.
type authority struct {
	pem, certPEM, keyPEM []byte
	pair                 tls.Certificate
	pool                 *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "smsc"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"smsc.test"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		pool:    x509.NewCertPool(),
	}
	a.pem = a.certPEM
	if a.pair, err = tls.X509KeyPair(a.certPEM, a.keyPEM); err != nil {
		t.Fatal(err)
	}
	a.pool.AppendCertsFromPEM(a.pem)
	return a
}

// tlsPair returns settings of a server and of a client that trusts it.
func tlsPair(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	a := newAuthority(t)
	return &tls.Config{Certificates: []tls.Certificate{a.pair}, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}
