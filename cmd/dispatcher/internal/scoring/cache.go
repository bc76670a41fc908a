package scoring

import (
	"sync"
	"time"
)

// maxCached bounds one generation of the cache, in scores; an answer costs answerCost scores in
// addition to its own. Two generations of 8 bytes a score are below 10 MB.
const (
	maxCached  = 1 << 19
	answerCost = 16
)

// cache keeps answers until they expire or newer ones need the room. It has two generations. When
// the young one is full it becomes the old one; old answers are dropped at the next change unless
// they are asked for again.
type cache struct {
	mu    sync.Mutex
	young map[key]answer // guarded by mu
	old   map[key]answer // guarded by mu
	cost  int            // guarded by mu: of young
	most  int            // bound of cost
}

// answer is the result of a question: scores, or a word.
type answer struct {
	values []float64
	word   string
	until  time.Time
}

func newCache() *cache { return &cache{young: map[key]answer{}, most: maxCached} }

// get returns an answer that has not expired.
func (c *cache) get(k key, now time.Time) (values []float64, word string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.young[k]
	if !ok {
		if a, ok = c.old[k]; ok && now.Before(a.until) {
			c.add(k, a)
		}
	}
	if !ok || !now.Before(a.until) {
		return nil, "", false
	}
	return a.values, a.word, true
}

// put keeps an answer for that long; 0 does not keep it.
func (c *cache) put(k key, values []float64, word string, now time.Time, keep time.Duration) {
	if keep <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(k, answer{values, word, now.Add(keep)})
}

// add must be called with mu held.
func (c *cache) add(k key, a answer) {
	if replaced, ok := c.young[k]; ok {
		c.cost -= len(replaced.values) + answerCost
	}
	c.young[k] = a
	if c.cost += len(a.values) + answerCost; c.cost >= c.most {
		c.old, c.young, c.cost = c.young, map[key]answer{}, 0
	}
}
