package numbers

import (
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// metadata holds all numbering plans. The library's own way to them must not be taken by two at a
// time, so nobody here takes it but this. The plans are part of the program, so that what is wrong
// with them panics.
var metadata = sync.OnceValue(func() []*phonenumbers.PhoneMetadata {
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		panic("numbers: " + err.Error())
	}
	return all.GetMetadata()
})
