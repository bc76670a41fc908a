package aws

import (
	"context"

	"dispatcher/provider/web"
)

// APIOf shows how a channel writes and reads; it has credentials.
func APIOf(c *Channel) web.API {
	_ = c.keys.refresh(context.Background())
	return newAPI(c.cfg, c.keys)
}
