package webtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
)

// Vendor is one API of a vendor, with the data of the checks that all adapters share. CheckVendor
// runs them; checks without data are left out.
type Vendor struct {
	// Protocol makes a new server side of the API.
	Protocol func() Protocol
	// Open makes a channel for an API at that address.
	Open func(t testing.TB, reach web.Config) provider.Channel
	// Secrets are what Open configures; none may appear in a result.
	Secrets []string
	// Reference is the channel's id of an accepted submit; unset, it is the carrier's.
	Reference func(s Submit) string
	// Validity is set if the API takes a relative validity.
	Validity *Validity

	// Files names the recorded answers, with a star for the name of each. Answers is the meaning of
	// each for a message with its own sender. OnSender lists those about the sender: they are not
	// Unfit for a message with the channel's sender.
	Files    string
	Classify func(*web.Answer) provider.Result
	Answers  map[string]provider.Result
	OnSender []string

	// Codes is the vendor's table of codes, see CodesOf. Blames lists refusals of it by their
	// blame: a fault of the account must not be one of the message.
	Codes  map[string]web.Meaning
	Blames map[web.Blame][]string
}

// CodesOf is a vendor's table with its codes as text.
func CodesOf[Code comparable](table map[Code]web.Meaning) map[string]web.Meaning {
	codes := make(map[string]web.Meaning, len(table))
	for code, meaning := range table {
		codes[fmt.Sprint(code)] = meaning
	}
	return codes
}

// CheckVendor runs all shared checks of an adapter.
func CheckVendor(t *testing.T, v Vendor) {
	t.Helper()
	for name, check := range map[string]func(*testing.T){
		"conformance": v.checkConformance, "answers": v.checkAnswers, "breaker": v.checkBreaker,
		"codes": v.checkCodes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

// deadline is how long a channel of the suite waits for an answer. A TLS handshake may take longer
// on a busy machine; then the suite tries again with twice the time.
const deadline = 500 * time.Millisecond

// checkConformance runs the conformance suite of providers over HTTP and HTTPS, and the checks for
// vendors that split texts themselves.
func (v *Vendor) checkConformance(t *testing.T) {
	for name, secure := range map[string]bool{"HTTP": false, "HTTPS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Harness{
				Connectionless: true, RetryAfter: true, Deadline: deadline, Secrets: v.Secrets,
				Start: func(t testing.TB, script providertest.Script) providertest.Instance {
					return v.start(t, script, secure)
				},
			})
		})
	}
	if v.Validity != nil {
		t.Run("ValidityCountsFromTheWrite", func(t *testing.T) {
			t.Parallel()
			v.Validity.countsFromTheWrite(t, v)
		})
	}
	t.Run("ASubmissionOfSinglePartsSendsNothing", func(t *testing.T) {
		t.Parallel()
		v.checkRemainingPartsRefused(t)
	})
}

// checkRemainingPartsRefused submits the rest of a text of which a former provider of the same
// channel has taken a part.
func (v *Vendor) checkRemainingPartsRefused(t *testing.T) {
	in := v.start(t, providertest.Always(providertest.Accept), false)
	for _, parts := range [][]int{{0}, {1}, {0, 2}, {}} {
		r := in.Channel.Send(t.Context(), provider.Submission{
			ID: "m-1", Attempt: 2, To: "+447700900123", From: "12345",
			Text: strings.Repeat("0123456789", 40), Parts: parts,
			Cut: "smpp gsm7 udh8 3 9f2c11ab03de", Key: "0123456789abcdef0123456789abcdef",
		})
		if r.Outcome != provider.Refused || r.Code != provider.Uncomposed || r.Err == nil ||
			r.Parts != nil {
			t.Errorf("parts %v: %v, code %q, %v", parts, r.Outcome, r.Code, r.Err)
		}
	}
	if n := len(in.Submits()); n != 0 {
		t.Errorf("the carrier got %d requests", n)
	}
}

// start starts a carrier that follows the script, and a channel for it.
func (v *Vendor) start(
	t testing.TB, script providertest.Script, secure bool,
) providertest.Instance {
	t.Helper()
	cfg, trust := Config{Protocol: v.Protocol(), Log: -1}, (*tls.Config)(nil)
	if secure {
		cfg.TLS, trust = certified(t)
	}
	cfg.Behaviour.Decide = func(n int, s Submit) providertest.Answer { return script(n, v.seen(s)) }
	carrier := Serve(t, cfg)
	reach := LocalConfig(t, carrier.URL())
	if script == nil {
		reach.BaseURL.Host = providertest.NoListener
	}
	reach.TLS = trust
	channel := v.Open(t, reach)
	t.Cleanup(func() { _ = channel.Close(t.Context()) }) // most checks have closed it
	t.Cleanup(func() { carrier.understood(t) })
	return providertest.Instance{Channel: channel, Submits: func() []providertest.Submit {
		var list []providertest.Submit
		for _, s := range carrier.Submits() {
			list = append(list, v.seen(s))
		}
		return list
	}}
}

// seen is a submit in the form of the suite.
func (v *Vendor) seen(s Submit) providertest.Submit {
	if v.Reference != nil && s.Reference != "" {
		s.Reference = v.Reference(s)
	}
	return providertest.Submit{To: s.To, Reference: s.Reference}
}

// understood fails unless every request could be read and used HTTP/1.1, even if the carrier speaks
// HTTP/2: see web.Client.
func (c *Carrier) understood(t testing.TB) {
	t.Helper()
	if unread := c.Unread(); len(unread) > 0 {
		t.Errorf("the carrier could not read %d requests: %q", len(unread), slices.Compact(unread))
	}
	for _, s := range c.Submits() {
		if s.Proto != "HTTP/1.1" {
			t.Errorf("a %s came over %s", s.Method, s.Proto)
		}
	}
}

// Serve starts a carrier that ends with the test.
func Serve(t testing.TB, cfg Config) *Carrier {
	t.Helper()
	carrier, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	return carrier
}

// certified is a certificate for the carrier, and a client configuration that trusts it.
func certified(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	server, client, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

// Validity is how an API expresses the validity of a message.
type Validity struct {
	// Pattern finds the number, its only group, in the query followed by the body of a request.
	Pattern string
	// Unit is the unit of the number; zero is a second.
	Unit time.Duration
}

// recordingProtocol records the last request that it read.
type recordingProtocol struct {
	Protocol
	query, body string
}

func (r *recordingProtocol) Read(request *http.Request, body []byte) (Submit, error) {
	r.query, r.body = request.URL.RawQuery, string(body)
	return r.Protocol.Read(request, body)
}

// countsFromTheWrite submits a message whose connection takes 1.2 seconds to establish, and fails
// unless the request has the validity that remains after that.
func (v *Validity) countsFromTheWrite(t *testing.T, vendor *Vendor) {
	protocol := &recordingProtocol{Protocol: vendor.Protocol()}
	carrier := Serve(t, Config{Protocol: protocol})
	reach := LocalConfig(t, carrier.URL())
	reach.ConnectTimeout = time.Minute
	reach.Timeout = time.Minute
	var connected time.Time
	reach.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		<-time.After(1200 * time.Millisecond)
		connected = time.Now()
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	channel := vendor.Open(t, reach)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	// Just above ten minutes, so that the wait shows in seconds and in minutes, however they are
	// rounded.
	deadline := time.Now().Add(10*time.Minute + 100*time.Millisecond)
	m := Message()
	m.From, m.Deadline, m.Validity = "ACME", deadline, deadline
	if r := channel.Send(t.Context(), m); r.Outcome != provider.Accepted {
		t.Fatalf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
	carrier.Close()
	unit := v.Unit
	if unit == 0 {
		unit = time.Second
	}
	found := regexp.MustCompile(v.Pattern).FindStringSubmatch(protocol.query + protocol.body)
	if len(found) != 2 {
		t.Fatal("the request has no validity")
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	left := deadline.Sub(connected)
	if most := int64((left + unit - 1) / unit); err != nil || n > most || n < 1 {
		t.Errorf("the request has a validity of %d x %s while %s are left", n, unit, left)
	}
}

// TLS makes a certificate for loopback that is valid for a day: server is for Config.TLS, and
// client trusts nothing else.
func TLS() (server, client *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "scripted carrier"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true,
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	server = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	return server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted}, nil
}
