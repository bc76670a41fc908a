package tier

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of 127.0.0.1 that is free, as is the next one. Both lie below the ranges
// from which Linux and package pgserver take ports, and no other test gets them before this one has
// ended: a server may be started there late, and again.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(6_000)
		if reserve(t, port) && reserve(t, port+1) {
			return port
		}
	}
	t.Fatal("no two free ports in a row")
	return 0
}

// reserve reports whether the port is free and now belongs to the test. A UDP socket of the same
// number marks it for other processes.
func reserve(t testing.TB, port int) bool {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var config net.ListenConfig
	mark, err := config.ListenPacket(t.Context(), "udp4", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = mark.Close() })
	listener, err := config.Listen(t.Context(), "tcp4", address)
	return err == nil && listener.Close() == nil
}
