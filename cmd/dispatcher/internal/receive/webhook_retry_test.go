package receive

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// calledAgain says after which answers each vendor calls again; docs/webhooks.md names the sources.
var calledAgain = map[string]func(status int) bool{
	"sinch":   func(status int) bool { return status >= 500 || status == 429 },
	"vonage":  func(status int) bool { return status >= 500 || status == 429 },
	"aws":     func(status int) bool { return status >= 500 || status == 429 },
	"twilio":  func(status int) bool { return status >= 500 }, // as the address that we give it asks for
	"plivo":   notSuccessful,
	"telnyx":  notSuccessful,
	"bird":    notSuccessful,
	"infobip": notSuccessful,
}

func notSuccessful(status int) bool { return status/100 != 2 }

// TestWhatARetryCanMendIsAnsweredWithAStatusThatEachVendorRetries.
func TestWhatARetryCanMendIsAnsweredWithAStatusThatEachVendorRetries(t *testing.T) {
	t.Parallel()
	for _, v := range []verdict{stale, broken, notYet, unusable, busy, unbooked, unconfirmed} {
		for vendor, again := range calledAgain {
			if !again(statuses[v]) {
				t.Errorf("%s does not call again after %d, the answer to what is %s", vendor, statuses[v], v)
			}
		}
	}
	for _, v := range []verdict{booked, replayed, empty, confirmed} {
		if statuses[v] != http.StatusOK {
			t.Errorf("%s is answered with %d", v, statuses[v])
		}
	}
}

// TestAChannelOfANewerRoutingIsAskedForAgain: another instance has given its address to a provider already. A name that stays unknown is
// no channel. One that is not remembered, because strangers have invented too many, may be new.
func TestAChannelOfANewerRoutingIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var u unknownChannels
	now := time.Unix(1_800_000_000, 0)
	if got := u.verdict("new", now); got != notYet {
		t.Errorf("at first: %s", got)
	}
	if got := u.verdict("new", now.Add(rollout-time.Second)); got != notYet {
		t.Errorf("during the rollout: %s", got)
	}
	if got := u.verdict("new", now.Add(rollout)); got != noChannel {
		t.Errorf("after it: %s", got)
	}
	for i := range 2 * maxUnknown {
		u.verdict(fmt.Sprint("stranger-", i), now)
	}
	for _, after := range []time.Duration{0, rollout + time.Second} {
		if got := u.verdict("another", now.Add(after)); got != notYet || len(u.since) > maxUnknown {
			t.Errorf("beyond the bound, after %s: %s, %d names", after, got, len(u.since))
		}
	}
	if got := u.verdict("another", now.Add(unknownMemory+time.Second)); got != notYet {
		t.Errorf("later: %s", got)
	}
}

// dribble begins a callback from an address and does not end it.
func dribble(t *testing.T, r *rig, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.webhooks.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, "POST /receipts/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSecret: right\r\nContent-Length: 3\r\n\r\nr")
	return conn
}

// closed reports whether the other side has closed a connection without an answer.
func closed(t *testing.T, conn net.Conn) bool {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	answer, _ := io.ReadAll(conn)
	return len(answer) == 0
}

// TestOneAddressCannotTakeAllRoomWithHalfSentBodies: others are served, and so is it once its own have come whole.
func TestOneAddressCannotTakeAllRoomWithHalfSentBodies(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	half := make([]net.Conn, maxUnreceived)
	for i := range half {
		half[i] = dribble(t, r, "127.0.0.3")
	}
	if !closed(t, dribble(t, r, "127.0.0.3")) {
		t.Error("one more of the same address was taken")
	}
	for name, conn := range map[string]net.Conn{"another address": dribble(t, r, "127.0.0.4"), "the first of the same": half[0]} {
		_, _ = io.WriteString(conn, "-1")
		if closed(t, conn) {
			t.Errorf("%s was not answered", name)
		}
	}
	again := dribble(t, r, "127.0.0.3")
	_, _ = io.WriteString(again, "-1")
	if closed(t, again) {
		t.Error("after one has come whole, the next is not answered")
	}
}

// TestAddressesOfOneIPv6NetworkShareABound: whoever has one address there has all of its /64. An IPv4 address that is written as
// IPv6 is the IPv4 address.
func TestAddressesOfOneIPv6NetworkShareABound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:2", true},
		{"[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2%eth0]:1", true},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1:2", true},
		{"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false},
		{"192.0.2.1:1", "192.0.2.2:1", false},
	} {
		one, other := calledFrom(c.one), calledFrom(c.other)
		if (one == other) != c.same {
			t.Errorf("%s counts as %s, %s as %s", c.one, one, c.other, other)
		}
	}
	free := newBounded(nil, 10, 2)
	for i := range 3 {
		request := &counted{from: free, address: calledFrom(fmt.Sprintf("[2001:db8::%d]:1", i+1))}
		if got, want := request.begin(), i < 2; got != want {
			t.Errorf("request %d of one network: taken %t", i+1, got)
		}
	}
}

// callFrom is a connection that only says where it comes from.
type callFrom struct {
	net.Conn
	address string
}

func (c callFrom) RemoteAddr() net.Addr { return addressText(c.address) }

// addressText is an address as its text.
type addressText string

func (addressText) Network() string  { return "tcp" }
func (a addressText) String() string { return string(a) }

func calledFrom(address string) netip.Addr { return addressOf(callFrom{address: address}) }
