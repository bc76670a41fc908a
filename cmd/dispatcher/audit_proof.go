package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// proofFlags are the flags of audit proof.
type proofFlags struct {
	day      string
	revision int64
	since    string
}

// auditProofCommand is "audit proof".
func (c *cli) auditProofCommand() *cobra.Command {
	var as format
	var f proofFlags
	cmd := &cobra.Command{
		Use:   "proof ID | proof --day DAY | proof --since FILE",
		Short: "Prove to somebody else that the log of hashes has a message or a closing, or only grew",
		Long: `Prints the newest leaf that the log has of a message, its inclusion proof (RFC 6962,
section 2.1.1), the checkpoint that it leads to, and the texts whose hashes the leaf has: the keyed
hash of the number, the choice, each attempt with price and answer, and the end.
deploy/audit/prove.py checks all of it without this program. With --day, prints the same of a
closing of that day, with its figures: the newest one that is sealed, or that of --revision. With
--since, prints the consistency proof (section 2.1.2) from a checkpoint that was kept to the newest
one. Whoever has the verifier key can check them with any tool for transparency logs, without the
database.`,
		Example: "  dispatcher audit proof order-4711 --format json\n" +
			"  dispatcher audit proof --day 2026-10-31 --format json\n" +
			"  dispatcher audit proof --since october.txt --format json",
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if len(args) == 0 && f.day == "" && f.since == "" {
				return usage(errors.New("name a message, --day or --since"))
			}
			if len(args) > 0 && f != (proofFlags{}) {
				return usage(errors.New("name a message or a flag, one of them"))
			}
			if _, err := time.Parse(time.DateOnly, f.day); f.day != "" && err != nil {
				return usage(fmt.Errorf("--day %q is not a day: write for example 2026-11-21", f.day))
			}
			return c.withLedger(ctx, func(l *database) error {
				if f.since != "" {
					g, err := growthSince(ctx, l, f.since)
					if err != nil {
						return err
					}
					return as.write(c.out, g, growthSheet(g))
				}
				var p *seal.Proof
				var err error
				if f.day != "" {
					p, err = proofOfClosing(ctx, l, f.day, f.revision)
				} else {
					p, err = proofOfMessage(ctx, l, args[0])
				}
				if err != nil {
					return err
				}
				return as.write(c.out, p, proofSheet(p))
			})
		}),
	}
	cmd.Flags().StringVar(&f.day, "day", "", "day whose closing is proved, such as 2026-11-21")
	cmd.Flags().Int64Var(&f.revision, "revision", 0, "revision of the closing (default the newest)")
	cmd.Flags().StringVar(&f.since, "since", "", "file with a checkpoint that was kept")
	cmd.MarkFlagsMutuallyExclusive("day", "since")
	cmd.MarkFlagsMutuallyExclusive("revision", "since")
	as.addTo(cmd.Flags())
	return cmd
}

// growthSince proves that the log extends a checkpoint in a file.
func growthSince(ctx context.Context, l *database, path string) (*seal.Growth, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(err)
	}
	size, err := seal.Size(string(text))
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", path, err))
	}
	from, err := l.Seals.OfSize(ctx, int64(size)) //nolint:gosec // A wrong one is not found.
	if err != nil {
		return nil, err
	}
	if from == nil {
		return nil, failed(fmt.Errorf("the log of hashes never had the %d leaves of %s", size, path))
	}
	newest, err := l.Seals.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	g, err := seal.ProveGrowth(from, newest, func(add func(*ledger.Seal) error) error {
		return l.Seals.Between(ctx, from.Number, math.MaxInt64, add)
	})
	if err != nil {
		return nil, failed(fmt.Errorf("no proof from the %d leaves of %s: %w", size, path, err))
	}
	return g, nil
}

func growthSheet(g *seal.Growth) sheet {
	return proofTable([][2]string{
		{"from", strconv.FormatUint(g.From, 10)}, {"size", strconv.FormatUint(g.Size, 10)},
	}, g.Hashes, g.Checkpoint)
}

// proofOfMessage is the proof of the newest leaf of a message.
func proofOfMessage(ctx context.Context, l *database, id string) (*seal.Proof, error) {
	record, err := l.Messages.Record(ctx, id)
	if errors.Is(err, ledger.ErrNoMessage) {
		return nil, failed(fmt.Errorf("no message has the id %s", id))
	}
	if err != nil {
		return nil, err
	}
	newest := newestLeaf{is: func(seq int64) bool { return seq == record.Message.Seq }}
	at := record.Message.ReceivedAt
	if err := l.Seals.Each(ctx, at, at.Add(time.Microsecond), newest.see); err != nil {
		return nil, err
	}
	if newest.seal == nil {
		return nil, failed(fmt.Errorf("the log of hashes has nothing of %s: messages are sealed some "+
			"minutes after they were received, by instances with DISPATCHER_SEAL_KEY_FILE", id))
	}
	p, err := newest.proof(ctx, l)
	if err == nil {
		p.Texts, err = l.Messages.Evidence(ctx, record.Message.Seq, newest.seal.Format < 2)
	}
	return p, err
}

// proofOfClosing is the proof of a closing of a day; of the newest one for revision 0.
func proofOfClosing(
	ctx context.Context, l *database, day string, revision int64,
) (*seal.Proof, error) {
	from, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, err
	}
	newest := newestLeaf{is: func(seq int64) bool {
		date, of, ok := ledger.ClosingOf(seq)
		return ok && date == day && (revision == 0 || of == revision)
	}}
	if err := l.Seals.EachOfClosings(ctx, from, newest.see); err != nil {
		return nil, err
	}
	if newest.seal == nil {
		return nil, failed(fmt.Errorf("the log of hashes has no such closing of %s: it is sealed some "+
			"minutes after it was made, by instances with DISPATCHER_SEAL_KEY_FILE", day))
	}
	return newest.proof(ctx, l)
}

// newestLeaf finds the last leaf of something in the log.
type newestLeaf struct {
	is    func(seq int64) bool
	seal  *ledger.Seal // that has it; nil until it is found
	place int          // among its leaves
}

func (n *newestLeaf) see(s *ledger.Seal) error {
	leaves, err := seal.ReadLeaves(s.Leaves)
	for i := range leaves {
		if n.is(leaves[i].Seq) {
			one := *s
			n.seal, n.place = &one, i
		}
	}
	return err
}

func (n *newestLeaf) proof(ctx context.Context, l *database) (*seal.Proof, error) {
	before, err := l.Seals.Number(ctx, n.seal.Number-1)
	if err != nil {
		return nil, err
	}
	p, err := seal.Prove(before, n.seal, n.place)
	if err != nil {
		return nil, failed(fmt.Errorf("the log of hashes is damaged, see \"dispatcher audit "+
			"verify\": %w", err))
	}
	return p, nil
}

func proofSheet(p *seal.Proof) sheet {
	var texts [][2]string
	for _, part := range ledger.PartNames {
		if text := p.Texts[part]; text != "" {
			texts = append(texts, [2]string{part, text})
		}
	}
	return proofTable(append(texts, [][2]string{
		{"leaf", base64.StdEncoding.EncodeToString(p.Leaf)},
		{"index", strconv.FormatUint(p.Index, 10)},
		{"size", strconv.FormatUint(p.Size, 10)},
	}...), p.Hashes, p.Checkpoint)
}

func proofTable(facts [][2]string, hashes [][]byte, checkpoint string) sheet {
	s := sheet{header: []string{"what", "value"}, wrap: map[int]int{2: 100}}
	for i := range facts {
		s.rows = append(s.rows, facts[i][:])
	}
	for _, hash := range hashes {
		s.rows = append(s.rows, []string{"hash", base64.StdEncoding.EncodeToString(hash)})
	}
	s.rows = append(s.rows, []string{"checkpoint", checkpoint})
	return s
}
