package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/config"
)

// warnOfFiles notes the files that new or changed settings of channels name and that are not on
// this machine. They may lie where the dispatchers run, so that is no fault.
func (ch *change) warnOfFiles(done *changed) {
	for i := range done.after.Channels {
		c := &done.after.Channels[i]
		if c.Test || c.Provider == "sandbox" || sameSettings(ch.base(), c) {
			continue
		}
		if missing := missingFiles(c, ch.settings.Secrets().Read); len(missing) > 0 {
			done.Warnings = append(done.Warnings, fmt.Sprintf(
				"Channel %s names %s, which cannot be read in the secrets folder of this machine, "+
					"%s (DISPATCHER_SECRETS_DIR): "+
					"see that it lies in that of the dispatchers, or the channel will not connect.",
				c.Name, strings.Join(missing, ", "), ch.settings.Secrets().Path()))
		}
	}
}

// sameSettings reports whether a channel has been in the document before with these settings.
func sameSettings(before *config.Routing, c *config.Channel) bool {
	return slices.ContainsFunc(before.Channels, func(old config.Channel) bool {
		return old.Name == c.Name && old.Provider == c.Provider && old.Test == c.Test &&
			reflect.DeepEqual(old.Settings, c.Settings)
	})
}

// missingFiles are those that a channel's adapter would read and readFile cannot.
func missingFiles(c *config.Channel, readFile func(string) ([]byte, error)) []string {
	var missing []string
	_ = app.Faults(c, func(name string) ([]byte, error) { // what is in the files is not asked here
		content, err := readFile(name)
		if err != nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return content, err
	})
	return missing
}
