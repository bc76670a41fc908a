package webtest

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"dispatcher/provider"
)

// Validity is how an API says for how long it is to keep a message.
type Validity struct {
	// Pattern finds the number, its only group, in the query and the body of a request, which are
	// put behind each other.
	Pattern string
	// Unit is that of the number; zero is a second.
	Unit time.Duration
}

// recordingProtocol notes the last request that it took apart.
type recordingProtocol struct {
	Protocol
	query, body string
}

func (r *recordingProtocol) Read(request *http.Request, body []byte) (Submit, error) {
	r.query, r.body = request.URL.RawQuery, string(body)
	return r.Protocol.Read(request, body)
}

// countsFromTheWrite submits a message whose connection takes two seconds to come up, and fails
// unless what the API is told is what is left by then.
func (v *Validity) countsFromTheWrite(t *testing.T, vendor *Vendor) {
	shape := &recordingProtocol{Protocol: vendor.Protocol()}
	carrier := Serve(t, Config{Protocol: shape})
	reach := LocalConfig(t, carrier.URL())
	reach.ConnectTimeout = time.Minute
	reach.Timeout = time.Minute
	var connected time.Time
	reach.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		<-time.After(2100 * time.Millisecond)
		connected = time.Now()
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	channel := vendor.Open(t, reach)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	// Just above ten minutes, so that the wait shows in seconds and in minutes.
	deadline := time.Now().Add(10*time.Minute + 600*time.Millisecond)
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
	found := regexp.MustCompile(v.Pattern).FindStringSubmatch(shape.query + shape.body)
	if len(found) != 2 {
		t.Fatal("the request does not say how long the message is to be kept")
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	left := deadline.Sub(connected)
	if most := int64((left + unit - 1) / unit); err != nil || n > most || n < 1 {
		t.Errorf("the API is to keep it for %d x %s while %s are left", n, unit, left)
	}
}
