package receive

import (
	"sync"
	"time"
)

const (
	// rollout is how long a channel that nobody knows may be one of a newer routing than this
	// instance has read. Its provider is asked to call again meanwhile.
	rollout = time.Minute
	// maxUnknown bounds how many names are remembered, for unknownMemory at least. Strangers can
	// call under any. A name beyond them may be that of a new channel, so its caller is asked to
	// call again, which needs no memory.
	maxUnknown    = 1000
	unknownMemory = 10 * time.Minute
)

// unknownChannels remembers since when callbacks name channels that the routing does not have. It
// is safe for concurrent use.
type unknownChannels struct {
	mu    sync.Mutex
	since map[string]time.Time // guarded by mu
	began time.Time            // guarded by mu: when the first of them was seen
}

// verdict is notYet for a name that was first seen a short while ago, and for one that is not
// remembered.
func (u *unknownChannels) verdict(name string, now time.Time) verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil || now.Sub(u.began) > unknownMemory {
		u.since, u.began = map[string]time.Time{}, now
	}
	since, seen := u.since[name]
	switch {
	case !seen:
		if len(u.since) < maxUnknown {
			u.since[name] = now
		}
		return notYet
	case now.Sub(since) < rollout:
		return notYet
	}
	return noChannel
}
