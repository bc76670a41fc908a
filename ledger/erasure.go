package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Erasure is a request to erase the number of a subscriber and the texts of the messages to it.
type Erasure struct {
	// Number is E.164 with its plus, and Written are the digits of all ways in which people write it.
	// They are not stored.
	Number  string
	Written []string
	// Tenant is the tenant whose messages are erased; nil for all tenants.
	Tenant *string
	// NumberHMAC is stored in the record of the request in place of the number, as in Message.
	NumberHMAC     int64
	Author, Reason string
	// DryRun erases and records nothing.
	DryRun bool
}

// Erased is what Erase did, or with DryRun would do.
type Erased struct {
	// Tenants are the tenants that had messages with a payload to the number, by name.
	Tenants []ErasedTenant
	// Parts counts waiting parts of messages from the number.
	Parts int64
}

// ErasedTenant counts messages of one tenant.
type ErasedTenant struct {
	Tenant string
	// Messages counts those whose payload was erased. Unended counts those that were left, because
	// they have not ended or are ambiguous.
	Messages, Unended int64
}

// Messages is the sum over all tenants.
func (e *Erased) Messages() (n int64) {
	for i := range e.Tenants {
		n += e.Tenants[i].Messages
	}
	return n
}

// Unended is the sum over all tenants.
func (e *Erased) Unended() (n int64) {
	for i := range e.Tenants {
		n += e.Tenants[i].Unended
	}
	return n
}

// Erase deletes the payloads of messages to a number, day by day; each day takes as long as reading
// it. It calls progress before each day, with the position of the day and the number of days. What
// was erased before an error stays erased, and is recorded; the call can be repeated. Opt-outs are
// kept. Any process may call it at any time.
func (s *Days) Erase(
	ctx context.Context, e *Erasure, progress func(day Day, at, of int),
) (erased Erased, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return erased, wrap("erase", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, keepSettings); err != nil {
		return erased, wrap("erase", err)
	}
	r := eraser{conn: conn, request: e, tenants: map[string]*ErasedTenant{}}
	err = r.run(ctx, progress)
	for _, t := range r.tenants {
		erased.Tenants = append(erased.Tenants, *t)
	}
	slices.SortFunc(erased.Tenants, func(a, b ErasedTenant) int {
		return cmp.Compare(a.Tenant, b.Tenant)
	})
	erased.Parts = r.parts
	return erased, wrap("erase", err)
}

// eraser is one call of Erase.
type eraser struct {
	conn    *pgx.Conn
	request *Erasure
	id      int64 // of the record of the request; 0 before it is stored
	tenants map[string]*ErasedTenant
	parts   int64
}

// payloadDays are the days that have payloads.
const payloadDays = `
	select day from dispatcher.days where (payloads or kept > 0) and not dropping order by day`

func (e *eraser) run(ctx context.Context, progress func(day Day, at, of int)) error {
	found, err := e.conn.Query(ctx, payloadDays)
	if err != nil {
		return err
	}
	days, err := pgx.CollectRows(found, pgx.RowTo[Day])
	if err == nil {
		err = e.eraseParts(ctx)
	}
	for i := 0; i < len(days) && err == nil; i++ {
		progress(days[i], i+1, len(days))
		err = e.eraseDay(ctx, days[i])
	}
	return err
}

// inTx calls do in a transaction, which a dry run rolls back.
func (e *eraser) inTx(ctx context.Context, do func(pgx.Tx) error) error {
	tx, err := e.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // After a commit it does nothing.
	if err := do(tx); err != nil || e.request.DryRun {
		return err
	}
	return tx.Commit(ctx)
}

// eraseParts stores the record of the request, and deletes waiting parts of messages from the
// number.
func (e *eraser) eraseParts(ctx context.Context) error {
	done := e.request
	return e.inTx(ctx, func(tx pgx.Tx) error {
		gone, err := tx.Exec(ctx,
			`delete from dispatcher.inbound_parts where ltrim(sender, '+') = $1`, e.digits())
		if err != nil {
			return err
		}
		e.parts = gone.RowsAffected()
		return tx.QueryRow(ctx, `
			insert into dispatcher.erasures (author, reason, tenant, number_hmac, parts)
			values ($1, $2, $3, $4, $5) returning id`,
			done.Author, done.Reason, done.Tenant, done.NumberHMAC, e.parts).Scan(&e.id)
	})
}

func (e *eraser) digits() string { return strings.TrimLeft(e.request.Number, "+") }

// betweenDigits is what may stand between two digits of a number: blanks, dots, dashes, slashes,
// brackets, and bytes that are not ASCII, such as those of a no-break space. It is for the text
// that PostgreSQL encodes as "escape".
const betweenDigits = `(?:[-_ ./()\t]|\\[23][0-7]{2}|\\\\(?:t|u00a0)){0,3}`

// pattern matches the number in a text, however it is written, but not as part of a longer one.
func (e *eraser) pattern() string {
	ways := append([]string{e.digits()}, e.request.Written...)
	for i, digits := range ways {
		ways[i] = strings.Join(strings.Split(digits, ""), betweenDigits)
	}
	return `(^|[^0-9]|\\[23][0-7]{2})(00)?(` + strings.Join(ways, "|") + `)([^0-9]|$)`
}

// tenantsOf are the tenants that have messages on a day.
var tenantsOf = ofDay(`select distinct tenant from dispatcher.messages`)

// erasePayloads deletes the payloads of messages to some recipients, $2. The payload of a record
// that could not be used has no recipient. It is deleted if it contains the digits of the number,
// $3, or is matched by pattern, $5, and if its tenant is $4 or not known. Payloads of unended
// messages stay; $1 is 0, see unended. The messages are locked, so that they are not sent again
// meanwhile.
var erasePayloads = ofDay(`
	with found as materialized (
	  select m.seq, m.tenant, ` + unended + ` as unended
	  from dispatcher.payloads p join dispatcher.messages m on m.seq = p.seq
	  where p.recipient = any($2) or p.recipient is null
	    and ($4::text is null or m.tenant in ('', $4))
	    and (position(convert_to($3, 'UTF8') in p.envelope) > 0
	      or encode(p.envelope, 'escape') ~ $5)
	  for update of m
	), gone as (
	  delete from dispatcher.payloads p using found f where p.seq = f.seq and not f.unended
	)
	select tenant, count(*) filter (where not unended), count(*) filter (where unended)
	from found group by tenant`)

func (e *eraser) eraseDay(ctx context.Context, day Day) error {
	recipients, err := e.recipients(ctx, day)
	if err != nil {
		return err
	}
	var found []ErasedTenant
	var messages int64
	err = e.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, erasePayloads.on(day), time.Duration(0), recipients, e.digits(),
			e.request.Tenant, e.pattern())
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ErasedTenant])
		if err != nil {
			return err
		}
		var unended int64
		for i := range found {
			messages, unended = messages+found[i].Messages, unended+found[i].Unended
		}
		_, err = tx.Exec(ctx, `update dispatcher.erasures
			set messages = messages + $2, unended = unended + $3 where id = $1`,
			e.id, messages, unended)
		if err == nil && messages > 0 {
			_, err = tx.Exec(ctx, cleanPayloads, day)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("of %s: %w", day, err)
	}
	for i := range found {
		t := e.tenants[found[i].Tenant]
		if t == nil {
			t = &ErasedTenant{Tenant: found[i].Tenant}
			e.tenants[t.Tenant] = t
		}
		t.Messages += found[i].Messages
		t.Unended += found[i].Unended
	}
	if messages > 0 && !e.request.DryRun {
		_, err = e.conn.Exec(ctx, vacuumPayloads.on(day))
	}
	return err
}

// cleanPayloads lets autovacuum remove deleted payloads of a day from the pages.
const cleanPayloads = `select dispatcher.clean_payloads($1)`

// vacuumPayloads does so at once for the owner of the table. For others PostgreSQL does nothing.
var vacuumPayloads = ofDay(`vacuum dispatcher.payloads`)

// recipients are the hashes of the number, one for each tenant of the day.
func (e *eraser) recipients(ctx context.Context, day Day) ([]int64, error) {
	if e.request.Tenant != nil {
		return []int64{Recipient(*e.request.Tenant, e.request.Number)}, nil
	}
	rows, err := e.conn.Query(ctx, tenantsOf.on(day))
	if err != nil {
		return nil, err
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	recipients := make([]int64, len(tenants))
	for i, tenant := range tenants {
		recipients[i] = Recipient(tenant, e.request.Number)
	}
	return recipients, err
}
