package web

import (
	"errors"
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfTheOpenInternetArePublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.8.8.8": true, "151.101.1.1": true, "2a00:1450:4001:80b::200e": true,
		"::ffff:8.8.8.8": true,
		"127.0.0.1":      false, "127.255.255.254": false, "10.0.0.1": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false,
		"192.0.0.8": false, "198.18.0.1": false,
		"224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false,
		"fd00:ec2::254": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false,
		"::ffff:100.64.0.1": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::a00:1": false, "2002:7f00:1::": false,
		"2001:0:7f00:1::": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %t, want %t", address, got, want)
		}
	}
}

// TestADialIsRefusedByTheAddressItWouldGoTo: the name is not resolved again between this check and
// the dial, so a name that resolves differently the second time is harmless.
func TestADialIsRefusedByTheAddressItWouldGoTo(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]error{
		"8.8.8.8:443": nil, "127.0.0.1:80": errPrivate, "[::1]:80": errPrivate,
		"[fe80::1%lo]:80": errPrivate, "[::ffff:192.168.0.1]:443": errPrivate,
	} {
		if err := refusePrivate("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if refusePrivate("tcp", "api.example.com:443", nil) == nil {
		t.Error("a name was dialled without being resolved")
	}
}
