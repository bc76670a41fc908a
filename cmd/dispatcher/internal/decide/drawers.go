package decide

import (
	"hash"

	"dispatcher/selector"
)

// drawers makes draws under every key of the key file. The first key draws for new messages. The
// others serve messages that were drawn under them, so that rotating the keys changes no choice
// already made. It has scratch space, so each claim has its own.
type drawers struct {
	keys  []selector.Key
	drawn []*selector.Drawer // by position in keys; nil until it is needed
	plain hash.Hash          // without key; nil until it is needed
	buf   []byte
}

func newDrawers(keys []selector.Key) *drawers {
	return &drawers{keys: keys, drawn: make([]*selector.Drawer, len(keys))}
}

// of is the drawer of the key with that id; that of the first key when the id is empty or its key
// is no longer in the file.
func (d *drawers) of(id string) *selector.Drawer {
	if id != "" {
		for i := range d.keys {
			if drawer := d.at(i); drawer.KeyID() == id {
				return drawer
			}
		}
	}
	return d.at(0)
}

// has reports whether the key of that id is in the file.
func (d *drawers) has(id string) bool { return d.of(id).KeyID() == id }

func (d *drawers) at(i int) *selector.Drawer {
	if d.drawn[i] == nil {
		d.drawn[i] = selector.NewDrawer(d.keys[i])
	}
	return d.drawn[i]
}
