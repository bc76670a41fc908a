package main

import (
	"context"

	"github.com/spf13/cobra"

	"dispatcher/config"
)

func (c *cli) configCommand() *cobra.Command {
	var as format
	var file string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting with its value and source, or check a routing document",
		Long: `Shows every DISPATCHER_... variable with the value that this process would use and
where it comes from; secrets are hidden. It exits with 2 and a sentence for each problem when the
settings cannot work.

With --routing FILE it checks a routing document instead and reports each problem with its line.`,
		Args: cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			if file != "" {
				return c.checkRouting(file, as)
			}
			return c.listSettings(as)
		}),
	}
	cmd.Flags().StringVar(&file, "routing", "", "routing document to check")
	as.addTo(cmd.Flags())
	return cmd
}

// listSettings prints the settings, then what is wrong with them.
func (c *cli) listSettings(as format) error {
	s, err := c.load()
	if err != nil {
		return usage(err)
	}
	if err := as.write(c.out, s.List(), list(as, s.List(), []column[config.Setting]{
		{key: "name", width: 36},
		{key: "value", width: 26},
		{key: "source"},
		{key: "help", width: 40},
	}...)); err != nil {
		return err
	}
	if err := s.Validate(true); err != nil {
		return usage(err)
	}
	return nil
}

// checkRouting prints what a valid document contains.
func (c *cli) checkRouting(file string, as format) error {
	doc, err := checkedRouting("--routing", file)
	if err != nil {
		return err
	}
	type checked struct {
		File     string   `json:"file"`
		Timezone string   `json:"timezone"`
		Channels []string `json:"channels"`
		Routes   []string `json:"routes"`
		Lanes    []string `json:"lanes"`
	}
	value := checked{
		file, doc.Timezone.String(), doc.ChannelNames(), doc.RouteNames(), doc.LaneNames(),
	}
	return as.write(c.out, value, list(as, []checked{value}, []column[checked]{
		{key: "file"},
		{key: "timezone"},
		{name: "channels", right: true, cell: func(c *checked) any { return len(c.Channels) }},
		{name: "routes", right: true, cell: func(c *checked) any { return len(c.Routes) }},
		{name: "lanes", right: true, cell: func(c *checked) any { return len(c.Lanes) }},
	}...))
}
