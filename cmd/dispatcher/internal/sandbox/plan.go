package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Plan lists the carriers to run.
type Plan struct{ Carriers []Carrier }

// Carrier is one carrier of a plan.
type Carrier struct {
	// Name is the name of its channel in the routing document.
	Name string
	// Provider is the word for its kind; see Providers.
	Provider string
	// Address is where it listens, host:port on loopback; empty takes a free port.
	Address string
	// Weight is its weight in the route; empty is 1.
	Weight  string
	Profile Profile
}

// Each is a plan with one carrier of each given kind, all with the same profile.
func Each(providers []string, profile Profile) Plan {
	var p Plan
	for _, word := range providers {
		p.Carriers = append(p.Carriers, Carrier{Name: word, Provider: word, Profile: profile})
	}
	return p
}

// CheckProvider returns an error for a word that is not a kind of provider.
func CheckProvider(word string) error {
	if slices.Contains(Providers(), word) {
		return nil
	}
	return fmt.Errorf("%q is none of %s%s", word, strings.Join(Providers(), ", "),
		meant(word, Providers()))
}

// CheckLoopback returns an error for an address that other machines could reach: a sandbox asks for
// no password, and anybody could send inbound messages through it.
func CheckLoopback(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("%q is not host:port", address)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" ||
		err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf(
		"%q is not on loopback, and a sandbox asks nobody for a password: write 127.0.0.1:%s",
		address,
		port,
	)
}

// Validate reports everything that is wrong with the plan.
func (p *Plan) Validate() error {
	if len(p.Carriers) == 0 {
		return errors.New("carriers: there is none; write for example - {provider: smpp}")
	}
	var faults []error
	seen := map[string]bool{}
	for i := range p.Carriers {
		c := &p.Carriers[i]
		at := "carriers." + c.Name
		if c.Name == "" {
			at = fmt.Sprintf("carriers[%d]", i)
		}
		faults = append(faults, prefixed(at, c.check(seen)))
		seen[c.Name] = true
	}
	return errors.Join(faults...)
}

// isName matches the names of channels that the routing document accepts.
var isName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// isWeight matches the weights of a routing document that are below a billion.
var isWeight = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// check reports the faults of one carrier, each with its key. seen are the names before it.
func (c *Carrier) check(seen map[string]bool) error {
	var faults []error
	fail := func(key, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
	}
	if c.Provider == "" {
		fail("provider", "is missing; choose one of %s", strings.Join(Providers(), ", "))
	} else if err := CheckProvider(c.Provider); err != nil {
		fail("provider", "%w", err)
	}
	switch {
	case c.Provider != "" && !isName.MatchString(c.Name):
		fail("name",
			"%q cannot name a channel; use up to 64 letters, digits, dots, dashes and underscores",
			c.Name)
	case c.Name != "" && seen[c.Name]:
		fail("name", "%q is used twice; give each carrier a name of its own", c.Name)
	}
	if c.Weight != "" && !isWeight.MatchString(c.Weight) {
		fail("weight", "%q is not a weight; write a decimal such as \"2.5\"", c.Weight)
	}
	if c.Address != "" {
		if err := CheckLoopback(c.Address); err != nil {
			fail("address", "%w", err)
		}
	}
	return errors.Join(append(faults, prefixed("profile", c.Profile.Validate()))...)
}
