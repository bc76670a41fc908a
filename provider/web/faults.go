package web

import (
	"errors"
	"strings"
)

// JoinFaults joins what was wrong with the settings that were read and what Validate found in the result. Each
// error reads "key: ..."; of a key that could not be read, what Validate says is left out, because it only says that
// there is no value.
func JoinFaults(read, invalid error) error {
	list := flatten(read)
	known := map[string]bool{}
	for _, err := range list {
		known[keyOf(err)] = true
	}
	for _, err := range flatten(invalid) {
		if !known[keyOf(err)] {
			list = append(list, err)
		}
	}
	return errors.Join(list...)
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, one := range joined.Unwrap() {
		list = append(list, flatten(one)...)
	}
	return list
}

func keyOf(err error) string {
	key, _, _ := strings.Cut(err.Error(), ":")
	return key
}
