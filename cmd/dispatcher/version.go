package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (make build); with go install it is empty and the module's version
// is used.
var version = ""

// versionText is the version shown in logs, metrics and the ledger's instances.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// commitText is the commit that this program was built from, with "+changes" appended when the
// checkout had changes; "unknown" if the build had no version control, as under "go run".
func commitText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownCommit
	}
	commit, changes := unknownCommit, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && s.Value != "":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	return commit + changes
}

const unknownCommit = "unknown"

// buildShown is what the command prints.
type buildShown struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (c *cli) versionCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			build := buildShown{
				versionText(), commitText(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH,
			}
			return as.write(c.out, build, list(as, []buildShown{build},
				keys[buildShown]("", "version", "commit", "go", "os", "arch")...))
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}
