package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate is an address that refuses connections until it is opened, and then passes them on.
type gate struct {
	t       testing.TB
	address string
	target  string

	listener net.Listener // nil while it is shut
	wg       sync.WaitGroup
}

// newGate reserves an address by listening there for a moment. Who uses it must have
// been started after it, and so ends before it.
func newGate(t testing.TB, target string) *gate {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, address: listener.Addr().String(), target: target}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.listener != nil {
			_ = g.listener.Close()
		}
		g.wg.Wait()
	})
	return g
}

// open listens from now to the end of the test.
func (g *gate) open() {
	g.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(g.t.Context(), "tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	g.listener = listener
	g.wg.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			g.wg.Go(func() { g.pass(in) })
		}
	})
}

// pass carries one connection until either side ends it.
func (g *gate) pass(in net.Conn) {
	defer in.Close() //nolint:errcheck // The other side has gone.
	out, err := (&net.Dialer{}).Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer out.Close() //nolint:errcheck // As above.
	g.wg.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	})
	_, _ = io.Copy(in, out)
}

// withPassword and withHost change a part of a database URL, hostOf reads it.
func withPassword(t testing.TB, address, password string) string {
	t.Helper()
	u := parseURL(t, address)
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}

func withHost(t testing.TB, address, host string) string {
	t.Helper()
	u := parseURL(t, address)
	u.Host = host
	return u.String()
}

func hostOf(t testing.TB, address string) string {
	t.Helper()
	return parseURL(t, address).Host
}

func parseURL(t testing.TB, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
