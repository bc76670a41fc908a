package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (make build); go install leaves it to the module's version.
var version = ""

// versionText is the version that logs, metrics and the ledger's instances show.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (c *cli) versionCommand() *cobra.Command {
	as := format(formatTable)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			value := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return as.print(c.out, value, sheet{
				header: []string{"version", "go", "os", "arch"},
				rows:   [][]string{{value.Version, value.Go, value.OS, value.Arch}},
			})
		}),
	}
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}
