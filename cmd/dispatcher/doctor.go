package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/status"
)

// Status of a check.
const (
	statusOK   = status.OK
	statusWarn = status.Warn
	statusFail = status.Fail
)

// finding is the result of one check.
type finding = status.Finding

func fine(check, format string, args ...any) finding {
	return finding{Check: check, Status: statusOK, Detail: fmt.Sprintf(format, args...)}
}

func warned(check, detail, fix string) finding { return status.Warned(check, detail, fix) }

// broken is a failed check. The text of err after its last semicolon, or else after its last colon,
// is the fix.
func broken(check string, err error) finding {
	text := err.Error()
	for _, mark := range []string{"; ", ": "} {
		if at := strings.LastIndex(text, mark); at > 0 {
			return finding{
				Check: check, Status: statusFail, Detail: text[:at], Fix: text[at+len(mark):],
			}
		}
	}
	return finding{Check: check, Status: statusFail, Detail: text}
}

func (c *cli) doctorCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check settings, broker, topics, database, channels and ports, and say what to do",
		Long: `Checks everything that "dispatcher run" needs, without changing anything. SMPP
channels are bound once and unbound; nothing is sent. It exits with 1 when a check fails.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error { return c.doctor(ctx, as) }),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) doctor(ctx context.Context, as format) error {
	findings := examine(ctx, c.load)
	value := struct {
		Checks []finding `json:"checks"`
		Warned int       `json:"warned"`
		Failed int       `json:"failed"`
	}{Checks: findings}
	for _, f := range findings {
		switch f.Status {
		case statusWarn:
			value.Warned++
		case statusFail:
			value.Failed++
		}
	}
	if err := as.write(c.out, value, list(as, findings, []column[finding]{
		{key: "check", width: 30},
		{key: "status"},
		{key: "detail", width: 38},
		{key: "fix", width: 32},
	}...)); err != nil {
		return err
	}
	if as == formatTable && value.Warned > 0 {
		fmt.Fprintf(c.out, "%d of %d checks warn.\n", value.Warned, len(findings))
	}
	if value.Failed > 0 {
		return failed(fmt.Errorf("%d of %d checks failed", value.Failed, len(findings)))
	}
	return nil
}
