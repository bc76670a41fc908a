package web

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// errPrivate is why a dial was refused.
var errPrivate = errors.New("the address lies in a private network; set allow_private if it is meant")

// special are ranges beside those that package netip names: shared address space (RFC 6598), this
// network (RFC 791), protocol assignments (RFC 6890), benchmarking (RFC 2544), reserved (RFC 1112), site-local
// addresses (RFC 3879), and IPv6 forms that carry an IPv4 address (RFC 4291, RFC 6052, RFC 3056, RFC 4380).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

// refusePrivate is a net.Dialer's Control. It sees the resolved address that is about to be dialled, so
// that no name can point inwards, not even by resolving differently the second time.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("resolved address: %w", err)
	}
	if !Public(ap.Addr()) {
		return errPrivate
	}
	return nil
}

// Public reports whether an address is one of the open internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
