package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"dispatcher/config"
	"dispatcher/provider/web"
)

// plainHost is the host of an http address on the public internet; empty for every other address. A
// host name counts as public unless private addresses are allowed.
func plainHost(address string, allowPrivate bool) string {
	u, err := url.Parse(address)
	if err != nil || !strings.EqualFold(u.Scheme, "http") || u.Hostname() == "" ||
		strings.EqualFold(u.Hostname(), "localhost") {
		return ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil && !web.Public(ip) || err != nil && allowPrivate {
		return ""
	}
	return u.Hostname()
}

// plainChannel is the host to which a channel sends without encryption; empty if there is none.
func plainChannel(c *config.Channel) string {
	base, _ := c.Settings["base_url"].(string)
	return plainHost(base, allowed(c.Settings["allow_private"]))
}

// openAddress reports whether a listener's address can be reached from other networks, judging by
// the address: all interfaces, or a public address.
func openAddress(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && (ip.IsUnspecified() || web.Public(ip))
}

// exposures are warnings about a document, and the settings used with it, that reveal numbers,
// texts or secrets.
func exposures(doc *config.Routing, s *config.Settings) []string {
	var out []string
	for i := range doc.Channels {
		c := &doc.Channels[i]
		if host := plainChannel(c); host != "" && !c.Test {
			out = append(out, fmt.Sprintf("Channel %s sends numbers, texts and its secrets to %s "+
				"without encryption: write base_url with https.", c.Name, host))
		}
	}
	for i := range doc.Routes {
		f := doc.Routes[i].Scoring.Function
		if f == nil {
			continue
		}
		if host := plainHost(f.URL, f.AllowPrivate); host != "" {
			out = append(out, fmt.Sprintf("Route %s calls its scoring function at %s without "+
				"encryption: write it with https.", doc.Routes[i].Name, host))
		}
	}
	if s != nil && openAddress(s.Listen) {
		out = append(out, fmt.Sprintf("DISPATCHER_LISTEN is %s, which other networks may reach: "+
			"metrics and profiles are there. %s", s.Listen, listenAdvice))
	}
	return out
}

const listenAdvice = "Listen on 127.0.0.1 or on an address of a private network, or let a " +
	"firewall or a proxy guard the port."
