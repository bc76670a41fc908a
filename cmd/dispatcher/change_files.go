package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/config"
)

// settingsReader reads a file that a channel's settings name, from the folder that "run" takes.
func settingsReader(s *config.Settings) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) && s.RoutingFile != "" {
			name = filepath.Join(filepath.Dir(s.RoutingFile), name)
		}
		return os.ReadFile(name)
	}
}

// warnOfFiles notes the files that new or changed settings of channels name and that are not on this machine. They may
// lie where the dispatchers run, so that is no fault.
func (ch *change) warnOfFiles(done *changed) {
	for i := range done.after.Channels {
		c := &done.after.Channels[i]
		if c.Test || c.Provider == "sandbox" || sameSettings(ch.base(), c) {
			continue
		}
		if missing := missingFiles(c, settingsReader(ch.settings)); len(missing) > 0 {
			done.Warnings = append(done.Warnings, fmt.Sprintf(
				"Channel %s names %s, which cannot be read on this machine: see that it lies where the dispatchers run, or the channel will not connect.",
				c.Name, strings.Join(missing, ", ")))
		}
	}
}

// sameSettings reports whether a channel has been in the document before with these settings.
func sameSettings(before *config.Routing, c *config.Channel) bool {
	return slices.ContainsFunc(before.Channels, func(old config.Channel) bool {
		return old.Name == c.Name && old.Provider == c.Provider && old.Test == c.Test && reflect.DeepEqual(old.Settings, c.Settings)
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
