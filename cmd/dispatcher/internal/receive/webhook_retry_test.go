package receive

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// retries are the words of docs/webhooks.md for the statuses after which a vendor calls again.
var retries = map[string]func(status int) bool{
	"5xx":         func(status int) bool { return status >= 500 },
	"5xx, 429":    func(status int) bool { return status >= 500 || status == 429 },
	"all but 2xx": func(status int) bool { return status/100 != 2 },
}

// guideRows returns the rows of docs/webhooks.md whose cells match.
func guideRows(t *testing.T, form string) [][]string {
	t.Helper()
	guide, err := os.ReadFile("../../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?m)^"+form).FindAllStringSubmatch(string(guide), -1)
}

// TestTemporaryFailuresAreAnsweredWithAStatusThatEachVendorRetries reads the table of the guide,
// which has a row for each vendor that calls back.
func TestTemporaryFailuresAreAnsweredWithAStatusThatEachVendorRetries(t *testing.T) {
	t.Parallel()
	var vendors []string
	for _, row := range guideRows(t, `\| (\w[\w ]*) \| (5xx|5xx, 429|all but 2xx) \| (yes|no) \|`) {
		vendor, again := row[1], retries[row[2]]
		vendors = append(vendors, vendor)
		for _, v := range []verdict{stale, broken, notYet, unusable, busy, unrecorded, unconfirmed} {
			if !again(statuses[v]) {
				t.Errorf("%s does not call again after %d, the answer to what is %s", vendor,
					statuses[v], v)
			}
		}
		for _, v := range []verdict{recorded, replayed, empty, confirmed} {
			if again(statuses[v]) {
				t.Errorf("%s calls again after %d, the answer to what is %s", vendor, statuses[v],
					v)
			}
		}
		if again(statuses[forged]) != (row[3] == "yes") {
			t.Errorf("the guide says %q of %s after %d, and that it calls again after %s", row[3],
				vendor, statuses[forged], row[2])
		}
	}
	slices.Sort(vendors)
	if want := []string{
		"AWS SNS", "Bird", "Infobip", "Plivo", "Sinch", "Telnyx", "Twilio",
		"Vonage",
	}; !slices.Equal(vendors, want) {
		t.Errorf("the guide has rows for %q, want %q", vendors, want)
	}
}

// TestTheGuideHasEachAnswer: with its status.
func TestTheGuideHasEachAnswer(t *testing.T) {
	t.Parallel()
	inGuide := map[verdict]int{}
	for _, row := range guideRows(t, "\\| (\\d{3}) \\| `(\\w+)` \\|") {
		inGuide[verdict(row[2])], _ = strconv.Atoi(row[1])
	}
	if !maps.Equal(inGuide, statuses) {
		t.Errorf("the guide has %v, the answers are %v", inGuide, statuses)
	}
}

// TestAChannelOfANewerRoutingIsAskedForAgain: another instance may already have given its address
// to a provider. A name that stays unknown is not a channel. A name that is not remembered, because
// too many were invented, may be new.
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

// beginCallback begins a callback from an address and does not end it.
func beginCallback(t *testing.T, r *rig, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.webhooks.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, "POST /receipts/a HTTP/1.1\r\nHost: x\r\nConnection: "+
		"close\r\nSecret: right\r\nContent-Length: 3\r\n\r\nr")
	return conn
}

// closed reports whether the other side has closed a connection without an answer.
func closed(t *testing.T, conn net.Conn) bool {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	answer, _ := io.ReadAll(conn)
	return len(answer) == 0
}

// TestOneAddressCannotTakeAllRoomWithHalfSentBodies: other addresses are served, and this one, too,
// when its bodies are complete.
func TestOneAddressCannotTakeAllRoomWithHalfSentBodies(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	half := make([]net.Conn, maxUnreceived)
	for i := range half {
		half[i] = beginCallback(t, r, "127.0.0.3")
	}
	if !closed(t, beginCallback(t, r, "127.0.0.3")) {
		t.Error("one more connection of the same address was accepted")
	}
	for name, conn := range map[string]net.Conn{
		"another address":       beginCallback(t, r, "127.0.0.4"),
		"the first of the same": half[0],
	} {
		_, _ = io.WriteString(conn, "-1")
		if closed(t, conn) {
			t.Errorf("%s was not answered", name)
		}
	}
	again := beginCallback(t, r, "127.0.0.3")
	_, _ = io.WriteString(again, "-1")
	if closed(t, again) {
		t.Error("after one body was complete, the next callback is not answered")
	}
}

// TestAddressesOfOneIPv6NetworkShareABound: a host usually has a whole /64. An IPv4 address written
// as IPv6 is the IPv4 address.
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
			t.Errorf("request %d of one network: accepted %t", i+1, got)
		}
	}
}

// callFrom is a connection with a given remote address.
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
