package tier

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of 127.0.0.1 that is free, as is the next one. Both lie below the range
// from which Linux gives ports to whoever asks for any, so that nobody else gets them while the
// server that had them is started again.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		if canListen(t, port) && canListen(t, port+1) {
			return port
		}
	}
	t.Fatal("no two free ports in a row")
	return 0
}

func canListen(t testing.TB, port int) bool {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && listener.Close() == nil
}
