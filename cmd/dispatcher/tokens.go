package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/access"
)

// tokenMade is the result of "tokens new". The token is shown only here.
type tokenMade struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Token string `json:"token"`
	Line  string `json:"line"`
	File  string `json:"file"` // file to which the line was added; empty for none
}

// tokenShown is one entry of the token file.
type tokenShown struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Tenant is the only tenant that a sender may send for; empty for all.
	Tenant string `json:"tenant"`
	Lanes  string `json:"lanes"` // its lanes, with commas between them; empty for all
	IDs    string `json:"ids"`   // how the ids of its messages begin; empty for any
	// Hash is the beginning of the token's SHA-256, to distinguish two tokens of one name.
	Hash string `json:"hash"`
}

func (c *cli) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Make and show the tokens of the API and the console",
		Long: `Works on the file of DISPATCHER_API_TOKENS_FILE. Each line has a name, a role and
the SHA-256 of a token, never the token itself. The file is read for every request: a token whose
line is removed is refused from then on, without a restart. Roles: a viewer reads operational
state; an operator also changes it; finance reads reports and the audit log; a sender hands messages
over; an admin may do all.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(c.tokensNewCommand(), c.tokensListCommand())
	return cmd
}

func (c *cli) tokensNewCommand() *cobra.Command {
	var as format
	var name, role, tenant, lanes, ids string
	cmd := &cobra.Command{
		Use:   "new --name NAME --role ROLE",
		Short: "Make a token, show it once, and add its line to the file",
		Long: `Shows a new random token and adds its line to the file of
DISPATCHER_API_TOKENS_FILE. Without that setting it shows the line, for a file elsewhere. The name
is the author of what is changed with the token: give each person and each program a token of its
own.`,
		Example: "  dispatcher tokens new --name anna --role operator",
		Args:    cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			parsed, err := access.ParseRole(role)
			if err != nil {
				return misused(err)
			}
			token, entry, err := access.NewToken(name, parsed)
			if err != nil {
				return misused(fmt.Errorf("--name: %w", err))
			}
			if tenant != "" {
				if err := entry.Bind(tenant); err != nil {
					return misused(fmt.Errorf("--tenant: %w", err))
				}
			}
			if err := entry.BoundTo(access.Lanes(lanes), ids); err != nil {
				return misused(fmt.Errorf("--lanes, --ids: %w", err))
			}
			made := tokenMade{
				Name: name, Role: role, Token: token, Line: entry.String(),
				File: c.lookup("DISPATCHER_API_TOKENS_FILE"),
			}
			if made.File != "" {
				if err := addToken(made.File, made.Line); err != nil {
					return failed(err)
				}
			}
			return c.showToken(&made, as)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "who has the token (required)")
	cmd.Flags().StringVar(&role, "role", "", access.RoleNames+" (required)")
	cmd.Flags().StringVar(&tenant, "tenant", "", "the only tenant that a sender may send for "+
		"(default all)")
	cmd.Flags().StringVar(&lanes, "lanes", "", "with --tenant: the only lanes, with commas between "+
		"them (default all)")
	cmd.Flags().StringVar(&ids, "ids", "", "with --tenant: how the ids of the messages begin, such "+
		"as shop- (default any)")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) showToken(made *tokenMade, as format) error {
	if as != formatTable {
		return as.write(c.out, made, list(as, []tokenMade{*made}, keys[tokenMade]("", "name",
			"role", "token", "line", "file")...))
	}
	fmt.Fprintln(c.out, made.Token)
	if made.File != "" {
		fmt.Fprintf(c.out, "This is the token of %s (%s). It is shown only now; %s has its hash.\n",
			made.Name, made.Role, made.File)
		return nil
	}
	fmt.Fprintf(c.out, "This is the token of %s (%s). It is shown only now. Put this line into the "+
		"file of\nDISPATCHER_API_TOKENS_FILE:\n%s\n", made.Name, made.Role, made.Line)
	return nil
}

// addToken appends a line to a file, which it creates if missing. If the last line has no line end,
// one is added first.
func addToken(path, line string) (err error) {
	if raw, err := os.ReadFile(path); err == nil && len(raw) > 0 && raw[len(raw)-1] != '\n' {
		line = "\n" + line
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the file of tokens: %w; correct DISPATCHER_API_TOKENS_FILE", err)
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

func (c *cli) tokensListCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who has a token, and with which role",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			path := c.lookup("DISPATCHER_API_TOKENS_FILE")
			if path == "" {
				return usage(errors.New("DISPATCHER_API_TOKENS_FILE is missing; set it to the " +
					"file of tokens"))
			}
			entries, err := access.ReadTokens(path)
			if err != nil {
				return usage(err)
			}
			shown := []tokenShown{}
			for i := range entries {
				e := &entries[i]
				shown = append(shown, tokenShown{
					e.Name, e.Role.String(), e.Tenant, string(e.Lanes), e.Prefix,
					fmt.Sprintf("%x", e.Hash[:4]),
				})
			}
			return as.write(c.out, shown, list(as, shown, keys[tokenShown]("", "name", "role",
				"tenant", "lanes", "ids", "hash")...))
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}
