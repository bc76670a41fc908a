package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
)

// definitionSeq is where the numbers of definitions in Seq begin. They are the lowest.
const definitionSeq = windowSeq + 4*kindSize

// Definition is the definition of a view or a function of the schemas dispatcher, audit and facts.
// The version of PostgreSQL (its name is PostgreSQL) and each migration (its name is the name of
// its file) are sealed as definitions too, because they explain why others changed.
type Definition struct {
	Name string // "view audit.active" or "dispatcher.recipient(text, text)", at most 48 bytes
	Hash [HashSize]byte
}

// definitionName is how many bytes of a name a leaf has: all parts but PartIntake.
const definitionName = (len(Parts{}) - 1) * HashSize

// Seq is the number of the leaf: -(2^58 + 11 * 2^54 + the first 54 bits of the name's SHA-256).
func (d *Definition) Seq() int64 {
	sum := sha256.Sum256([]byte(d.Name))
	return -definitionSeq - int64(binary.BigEndian.Uint64(sum[:8])>>10) //nolint:gosec // 54 bits
}

// evidence has the hash as PartIntake, and the name in the other parts.
func (d *Definition) evidence() *Evidence {
	e := &Evidence{Seq: d.Seq()}
	e.Parts[PartIntake] = d.Hash
	name := make([]byte, definitionName)
	copy(name, d.Name)
	for p := PartPlan; p < len(e.Parts); p++ {
		copy(e.Parts[p][:], name[(p-PartPlan)*HashSize:])
	}
	return e
}

// DefinitionOf reads a definition from the parts of its leaf. It returns nil for any other Seq.
func DefinitionOf(seq int64, parts *Parts) *Definition {
	if seq > -definitionSeq {
		return nil
	}
	var name []byte
	for p := PartPlan; p < len(parts); p++ {
		name = append(name, parts[p][:]...)
	}
	return &Definition{Name: string(bytes.TrimRight(name, "\x00")), Hash: parts[PartIntake]}
}

// selectDefinitions lists all definitions by their names. It reads system catalogs with functions
// of PostgreSQL alone, so that the owner of the schemas cannot replace what it calls. It depends on
// definitionSettings.
const selectDefinitions = `
	select d.name, substring(sha256(convert_to(d.text, 'UTF8')) from 1 for 16)
	from (
	  select 'view ' || n.nspname || '.' || c.relname as name, pg_get_viewdef(c.oid) as text
	  from pg_class c join pg_namespace n on n.oid = c.relnamespace
	  where n.nspname in ('dispatcher', 'audit', 'facts') and c.relkind = 'v'
	  union all
	  select n.nspname || '.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')',
	    pg_get_functiondef(p.oid)
	  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
	  where n.nspname in ('dispatcher', 'audit', 'facts')
	  union all
	  select 'policy ' || n.nspname || '.' || c.relname || ' ' || p.polname,
	    concat(pg_get_expr(p.polqual, p.polrelid), ' ', pg_get_expr(p.polwithcheck, p.polrelid))
	  from pg_policy p join pg_class c on c.oid = p.polrelid
	  join pg_namespace n on n.oid = c.relnamespace
	  where n.nspname in ('dispatcher', 'audit', 'facts')
	  union all
	  select 'PostgreSQL', current_setting('server_version_num')
	  union all
	  select name, checksum from facts.migrations
	) d order by d.name collate "C"`

// definitionSettings make definitions name all schemas, and be written alike in each session.
const definitionSettings = `select set_config('search_path', 'pg_catalog', true),
	set_config('quote_all_identifiers', 'off', true)`

// Definitions returns the definitions as they are now.
func (s *Sealed) Definitions(ctx context.Context) (all []Definition, err error) {
	err = s.snapshot(ctx, func(tx pgx.Tx) error {
		all, err = definitions(ctx, tx)
		return err
	})
	return all, wrap("read definitions", err)
}

func definitions(ctx context.Context, tx pgx.Tx) (all []Definition, err error) {
	if _, err := tx.Exec(ctx, definitionSettings); err != nil {
		return nil, err
	}
	r, err := tx.Query(ctx, selectDefinitions)
	if err != nil {
		return nil, err
	}
	var d Definition
	var hash []byte
	_, err = pgx.ForEachRow(r, []any{&d.Name, &hash}, func() error {
		copy(d.Hash[:], hash)
		d.Name = d.Name[:min(len(d.Name), definitionName)]
		all = append(all, d)
		return nil
	})
	return all, err
}

// newDefinitions returns the hash of all definitions, or nil if it is that of the last seal that
// has one.
func newDefinitions(ctx context.Context, tx pgx.Tx) ([]byte, error) {
	all, err := definitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for i := range all {
		sum.Write([]byte(all[i].Name + "\x00"))
		sum.Write(all[i].Hash[:])
	}
	hash := sum.Sum(nil)[:HashSize]
	var same bool
	err = tx.QueryRow(ctx, `select coalesce((select definitions = $1 from dispatcher.seals
		where definitions is not null order by number desc limit 1), false)`, hash).Scan(&same)
	if same {
		hash = nil
	}
	return hash, err
}

// addDefinitions adds each definition that differs from its last leaf. A definition that was
// dropped gets no leaf.
func addDefinitions(ctx context.Context, tx pgx.Tx, writer SealWriter) error {
	if err := known(ctx, tx, writer, `select leaves from dispatcher.seals
		where definitions is not null order by number`); err != nil {
		return err
	}
	all, err := definitions(ctx, tx)
	if err != nil {
		return err
	}
	for i := range all {
		if err := writer.Add(all[i].evidence()); err != nil {
			return err
		}
	}
	return nil
}
