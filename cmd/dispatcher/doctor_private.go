package main

import (
	"context"
	"net"
	"net/url"

	"dispatcher/config"
	"dispatcher/provider/web"
)

// inward is the host of a channel's base_url whose address lies in a private network, where
// requests do not go unless allow_private is set; empty for every other. What a proxy makes of the
// name is not known here.
func inward(ctx context.Context, c *config.Channel) (host string) {
	text, _ := c.Settings["base_url"].(string)
	base, err := url.Parse(text)
	if err != nil || base.Hostname() == "" || c.Settings["proxy"] != nil ||
		allowed(c.Settings["allow_private"]) {
		return ""
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname())
	if err != nil {
		return "" // the first message will tell, as it would of a wrong path
	}
	for _, address := range addresses {
		if !web.Public(address) {
			return base.Hostname()
		}
	}
	return ""
}

// allowed reads a setting that is true or false as settings.Reader does.
func allowed(value any) bool { return value == true || value == "true" || value == "on" }
