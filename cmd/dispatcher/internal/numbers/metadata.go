package numbers

import (
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// metadata holds all numbering plans. The library's function for them is not safe for concurrent
// use, so nothing else here calls it. The plans are compiled in, so an error in them panics.
var metadata = sync.OnceValue(func() []*phonenumbers.PhoneMetadata {
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		panic("numbers: " + err.Error())
	}
	return all.GetMetadata()
})
