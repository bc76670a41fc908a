package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// fault handles the n-th request of a connection, from 1. It returns false to close the connection.
type fault struct {
	name   string
	answer func(conn net.Conn, n int) (stay bool)
	// warm sends one message before the counted one, over a connection that is then kept.
	warm bool
	// unread is set if the server may never read the request.
	unread bool
}

func respond(text string) func(net.Conn, int) bool {
	return func(conn net.Conn, _ int) bool {
		_, err := io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
		return err == nil
	}
}

// thenDies answers the first request, reads the second and closes the connection.
func thenDies(conn net.Conn, n int) bool {
	return n == 1 && respond("HTTP/1.1 500 Internal Server Error\nContent-Length: 0\n\n")(conn, n)
}

// closesIdle closes the connection without a sign, as servers do after their idle timeout.
func closesIdle(conn net.Conn, n int) bool {
	respond("HTTP/1.1 500 Internal Server Error\nContent-Length: 0\n\n")(conn, n)
	return false
}

var faults = []fault{
	{
		name:   "the connection dies after the request",
		answer: func(net.Conn, int) bool { return false },
	},
	{
		name: "the answer breaks off in its header",
		answer: func(c net.Conn, n int) bool {
			respond("HTTP/1.1 200 OK\nContent-")(c, n)
			return false
		},
	},
	{name: "the answer breaks off in its body", answer: func(c net.Conn, n int) bool {
		respond("HTTP/1.1 200 OK\nContent-Length: 100\n\n{")(c, n)
		return false
	}},
	{name: "a word ahead of the answer, and no answer", answer: func(c net.Conn, n int) bool {
		respond("HTTP/1.1 103 Early Hints\n\n")(c, n)
		return false
	}},
	{name: "no answer in time", answer: func(net.Conn, int) bool { return true }},
	{name: "an answer that is not HTTP", answer: respond("220 mail ready\n")},
	{
		name:   "200 with a body that means nothing",
		answer: respond("HTTP/1.1 200 OK\nContent-Length: 2\n\n[]"),
	},
	{
		name:   "302 to the same address",
		answer: respond("HTTP/1.1 302 Found\nLocation: /\nContent-Length: 0\n\n"),
	},
	{
		name:   "307 to the same address",
		answer: respond("HTTP/1.1 307 Temporary Redirect\nLocation: /\nContent-Length: 0\n\n"),
	},
	{
		name:   "408 Request Timeout",
		answer: respond("HTTP/1.1 408 Request Timeout\nContent-Length: 0\nConnection: close\n\n"),
	},
	{
		name:   "421 Misdirected Request",
		answer: respond("HTTP/1.1 421 Misdirected Request\nContent-Length: 0\n\n"),
	},
	{
		name:   "429 with Retry-After",
		answer: respond("HTTP/1.1 429 Too Many Requests\nRetry-After: 2\nContent-Length: 0\n\n"),
	},
	{name: "500", answer: respond("HTTP/1.1 500 Internal Server Error\nContent-Length: 0\n\n")},
	{
		name:   "503 with Retry-After",
		answer: respond("HTTP/1.1 503 Service Unavailable\nRetry-After: 2\nContent-Length: 0\n\n"),
	},
	{name: "a kept connection dies with the request", answer: thenDies, warm: true},
	{
		name:   "a kept connection was closed while it was idle",
		answer: closesIdle,
		warm:   true,
		unread: true,
	},
}

// TestOneSendIsOneRequestWhateverDies counts, at a plain TCP server, the requests that one Send of
// each adapter makes, and prints the table of docs/providers.md.
func TestOneSendIsOneRequestWhateverDies(t *testing.T) {
	t.Parallel()
	var providers []string
	for _, v := range vendors() {
		if openers[v.provider] != nil {
			providers = append(providers, v.word)
		}
	}
	outcomes := make(map[string]map[string]string, len(faults)) // by fault and provider
	for _, f := range faults {
		outcomes[f.name] = map[string]string{}
	}
	var mu sync.Mutex
	t.Run("all", func(t *testing.T) {
		for _, word := range providers {
			for _, f := range faults {
				t.Run(word+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					requests, outcome := try(t, word, &f)
					// A client may write into a connection before it learns that it was closed; the server does
					// not read that.
					if requests > 1 {
						t.Errorf("%d requests for one message", requests)
					}
					mu.Lock()
					defer mu.Unlock()
					outcomes[f.name][word] = outcome.String()
				})
			}
		}
	})
	var table strings.Builder
	fmt.Fprintf(&table, "| one message, one request, and | %s |\n|---|%s\n",
		strings.Join(providers, " | "), strings.Repeat("---|", len(providers)))
	for _, f := range faults {
		row := make([]string, len(providers))
		for i, word := range providers {
			row[i] = outcomes[f.name][word]
		}
		fmt.Fprintf(&table, "| %s | %s |\n", f.name, strings.Join(row, " | "))
	}
	t.Log("\n" + table.String())
}

// try sends a message to a server with a fault and returns how many requests the server read.
func try(t *testing.T, word string, f *fault) (requests int, outcome provider.Outcome) {
	t.Helper()
	server := startFaulty(t, f)
	channel := openAt(t, word, "http://"+server.address())
	submission := provider.Submission{
		ID: "one", Attempt: 1, Key: strings.Repeat("0123456789abcdef", 2), To: "+447700900123",
		From: "ACME", Text: "Your code is 123456",
		Validity: time.Now().Add(time.Hour),
	}
	if f.warm {
		channel.Send(t.Context(), submission)
		server.settle()
	}
	before := server.count()
	result := channel.Send(t.Context(), submission)
	if err := channel.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !f.unread {
		tier.Eventually(t, "the server has read the request", func() bool {
			return server.count() > before
		})
	}
	return server.count() - before, result.Outcome
}

// openAt opens a channel of a sandbox account whose API is on another server.
func openAt(t *testing.T, word, url string) provider.Channel {
	t.Helper()
	files := &secrets{folder: t.TempDir(), prefix: word}
	v := vendorOf(word)
	a := v.open(files, "http://127.0.0.1:1/receipts/x")
	if files.err != nil {
		t.Fatal(files.err)
	}
	settings := maps.Clone(a.settings)
	settings["base_url"], settings["allow_private"], settings["timeout"] = url+a.path, true, "2s"
	channel, err := openers[v.provider](settings,
		web.Environment{ReadFile: os.ReadFile, Callback: "http://127.0.0.1:1/receipts/x"})
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

// faultyServer counts requests and handles them as its fault does.
type faultyServer struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	requests int                   // guarded by mu
	open     map[net.Conn]struct{} // guarded by mu
	closed   int                   // guarded by mu: connections
}

func startFaulty(t *testing.T, f *fault) *faultyServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &faultyServer{listener: listener, open: map[net.Conn]struct{}{}}
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = struct{}{}
			s.mu.Unlock()
			s.running.Go(func() { s.serve(conn, f) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for conn := range s.open {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return s
}

func (s *faultyServer) serve(conn net.Conn, f *fault) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.open, conn)
		s.closed++
		s.mu.Unlock()
	}()
	reader := bufio.NewReader(conn)
	for n := 1; ; n++ {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.requests++
		s.mu.Unlock()
		if _, err := io.Copy(io.Discard, request.Body); err != nil || !f.answer(conn, n) {
			return
		}
	}
}

// settle waits until the connections to be closed are closed.
func (s *faultyServer) settle() {
	for range 200 {
		s.mu.Lock()
		done := s.closed > 0
		s.mu.Unlock()
		if done {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func (s *faultyServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *faultyServer) address() string { return s.listener.Addr().String() }

// TestEveryKindIsPlayed: the sandbox has a carrier of every kind.
func TestEveryKindIsPlayed(t *testing.T) {
	t.Parallel()
	for word := range openers {
		if !slices.Contains(Providers(), word) {
			t.Errorf("the sandbox has no carrier of kind %s", word)
		}
	}
}
