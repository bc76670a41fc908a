package httpapi

import "dispatcher/provider/web"

// APIOf shows how a channel writes and reads.
func APIOf(c *Channel) web.API { return api{&c.cfg} }
