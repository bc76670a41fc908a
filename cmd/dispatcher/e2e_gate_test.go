package main

import (
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"dispatcher/ledger/ledgertest"
)

// gate is an address that refuses connections until it is opened, and then forwards them.
type gate struct {
	t       testing.TB
	address string
	target  string
	socket  *os.File // reserves the address

	listener net.Listener // nil while closed
	wg       sync.WaitGroup
}

// newGate creates a closed gate. Processes that use it must be started after it, so that they end
// before it.
func newGate(t testing.TB, target string) *gate {
	t.Helper()
	g := &gate{t: t, target: target}
	g.socket, g.address = reserve(t)
	t.Cleanup(func() {
		if g.listener != nil {
			_ = g.listener.Close()
		}
		g.wg.Wait()
	})
	return g
}

// reserve returns an address that refuses connections and that nobody gets who asks for any free
// one: a socket is bound to it and does not listen. A process that is told to listen there can,
// because both sockets have SO_REUSEADDR. The address is released at the end of the test.
func reserve(t testing.TB) (socket *os.File, address string) {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	socket = os.NewFile(uintptr(fd), "reserved address")
	t.Cleanup(func() { _ = socket.Close() })
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return socket, net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
}

// open accepts connections from now to the end of the test.
func (g *gate) open() {
	g.t.Helper()
	err := syscall.Listen(int(g.socket.Fd()), syscall.SOMAXCONN)
	if err == nil {
		g.listener, err = net.FileListener(g.socket)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.wg.Go(func() {
		for {
			in, err := g.listener.Accept()
			if err != nil {
				return
			}
			g.wg.Go(func() { g.pass(in) })
		}
	})
}

// pass forwards one connection until either side ends it.
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

// withPassword and withHost change a part of a database URL, and hostOf reads the host. No server
// takes the password: it belongs to a user that none knows.
func withPassword(t testing.TB, address, password string) string {
	t.Helper()
	u := parseURL(t, address)
	u.User = url.UserPassword(ledgertest.Stranger, password)
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
