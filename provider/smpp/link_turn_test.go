package smpp

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider/smpp/smpptest"
)

// hosts are servers by address whose dials are noted; one that is away refuses them.
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

// startAt returns a client with one bind and those addresses.
func (h *hosts) startAt(t *testing.T, addresses ...string) *Client {
	t.Helper()
	c, err := New(Config{Addresses: addresses, SystemID: "acme", Dial: h.dial})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// TestAHostThatBindsAndDropsIsLeft, as a load balancer in front of a dead host does.
func TestAHostThatBindsAndDropsIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(map[string]smpptest.Behaviour{"bad:1": {}, "good:1": {}})
		c := h.startAt(t, "bad:1", "good:1")
		<-time.After(20 * time.Millisecond)
		h.servers["bad:1"].CutAll()
		<-time.After(time.Hour) // of the bubble
		if want := []string{"bad:1", "good:1"}; !slices.Equal(h.dials, want) {
			t.Errorf("dialled %v, want %v", h.dials, want)
		}
		closeIn(t, c)
		h.close()
	})
}

// TestAHostThatIsSilentOrTakesNothingIsLeft however long it was bound.
func TestAHostThatIsSilentOrTakesNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviour smpptest.Behaviour
		messages  int
		cut       bool
	}{
		"enquire_link unanswered": {smpptest.Behaviour{IgnoreEnquireLink: true}, 0, false},
		"ailing when it drops":    {smpptest.Behaviour{ErrorEvery: 1}, maxFaults, true},
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

// TestABindGoesBackToItsHost: it fled while the host was away, and returns when its connection ends in a good way.
func TestABindGoesBackToItsHost(t *testing.T) {
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
