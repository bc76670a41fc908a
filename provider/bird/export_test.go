package bird

import "dispatcher/provider/web"

// APIOf shows how a channel writes and reads.
func APIOf(c *Channel) web.API {
	if c.cfg.API == Channels {
		return channels{c.cfg}
	}
	return messages{c.cfg}
}
