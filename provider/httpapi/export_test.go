package httpapi

import "dispatcher/provider/web"

// APIOf returns the API of a channel.
func APIOf(c *Channel) web.API { return api{&c.cfg} }
