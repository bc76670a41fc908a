package pages

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// busyDocument has many channels, each with limits, in one route.
func busyDocument(channels int) string {
	var out strings.Builder
	out.WriteString("timezone: Europe/London\nchannels:\n")
	for i := range channels {
		fmt.Fprintf(&out, "  provider-channel-%02d: {provider: sandbox, price: {currency: GBP, "+
			"default: \"0.031\"}, limits: [{window: 1s, max: 50}, {window: 1d, max: 100000}, "+
			"{window: 1d, max: 1000, tenant: \"*\"}]}\n", i)
	}
	out.WriteString("routes:\n  - {name: default, match: {}, weights: {")
	for i := range channels {
		fmt.Fprintf(&out, "provider-channel-%02d: %d, ", i, i+1)
	}
	out.WriteString("}}\nlanes:\n  otp: {topics: [sms.otp], ttl: 10m}\n")
	return out.String()
}

// uuid is an id of the usual length.
func uuid(kind string, n int) string {
	return fmt.Sprintf("%-8s-d9cb-469f-a165-%012d", kind, n)
}

const busyRows = 300

// newBusyConsole has 40 channels, and 300 rows in each list.
func newBusyConsole(t *testing.T) *console {
	t.Helper()
	c := newConsole(t)
	c.apply(t, busyDocument(40))
	var unanswered, dead []ledger.Message
	until := time.Now().Add(time.Hour)
	for i := range busyRows {
		unanswered = append(unanswered, ledger.Message{
			ID: uuid("unknown0", i), Lane: "otp", Tenant: "shop", State: ledger.Sending,
			ExpiresAt: until, Envelope: []byte(`{"id":"x","to":"+447700900123","text":"x"}`),
			Plan: ledger.Plan{Route: "default", Version: 2, FirstChoice: "provider-channel-01", Segments: 1},
		})
		dead = append(dead, ledger.Message{
			ID: uuid("dead0000", i), Lane: "otp", State: ledger.Dead, Reason: "unknown_field",
			Detail:   `the field "language" is none of an envelope: labels are in "labels"`,
			Envelope: []byte(`{}`), Origin: ledger.Origin{Topic: "sms.otp", Offset: int64(i)},
		})
	}
	for _, messages := range [][]ledger.Message{unanswered, dead} {
		each := make([]ledger.Decision, len(messages))
		for i := range each {
			if messages[i].State == ledger.Sending {
				each[i] = ledger.Decision{
					State: ledger.Waiting, Reason: "no_slot", NextAt: until, Plan: messages[i].Plan,
				}
			}
		}
		tx, err := c.ledger.Claims.Lock(t.Context(), ledger.Claim{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := tx.Commit(t.Context(), ledger.Decisions{Each: each}); err != nil {
			t.Fatal(err)
		}
	}
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // It was read.
	for _, sql := range []string{
		`update dispatcher.messages set state = 'sending', next_at = null, attempts = 1
		where id like 'unknown0%'`,
		`insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
		  segments, channel, reason, currency, settled_at, answers, outcome, provider_code)
		select seq, 1, now() - seq % 300 * interval '2 seconds', 31000, 1, 1,
		  'provider-channel-' || lpad((seq % 40)::text, 2, '0'), 'first_choice', 'GBP', now(), 1,
		  'unknown', 'bind_lost'
		from dispatcher.messages where id like 'unknown0%'`,
		`insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, opened_at, until,
		  next_at)
		select seq, 'k', 1, 1, 'lookup', now() - seq % 7 * interval '1 second', now() + '1 hour',
		  now() + '1 hour'
		from dispatcher.messages where id like 'unknown0%'`,
		`insert into dispatcher.operator_actions (at, author, reason, action, subject)
		select now() - n % 50 * interval '1 minute', 'anna.operator@example.com',
		  'the carrier says that it has lost all messages of this morning',
		  'pause', 'route of-the-tenant-' || n from generate_series(1, 300) n`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestPagesOfABusySystemAreSmall(t *testing.T) {
	t.Parallel()
	c := newBusyConsole(t)
	b := c.client(t, "admin")
	assets := 0
	for _, asset := range []string{"console.css", "console.js", "icon.svg"} {
		assets += len(b.get("/assets/" + asset).body)
	}
	paths := strings.NewReplacer("{$}", "", "{route}", "default", "{version}", "2",
		"{channel}", "provider-channel-07", "{id}", uuid("unknown0", 1))
	for _, e := range (&Server{}).endpoints() {
		method, path, _ := strings.Cut(paths.Replace(e.pattern), " ")
		if method != http.MethodGet || strings.HasPrefix(path, "/live/") || path == csvPath {
			continue
		}
		got := b.get(path)
		if got.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d %s", path, got.StatusCode, got.body)
		}
		size := len(got.body) + assets
		t.Logf("%s loads %d bytes", path, size)
		if size > largestPaint {
			t.Errorf("%s loads %d bytes, more than %d", path, size, largestPaint)
		}
	}
}

// TestListsHaveNextPages: by their links every row is seen, and seen once.
func TestListsHaveNextPages(t *testing.T) {
	t.Parallel()
	c := newBusyConsole(t)
	b := c.client(t, "admin")
	for path, tc := range map[string]struct{ row, link string }{
		"/ambiguous": {
			`<th scope="row" class="mono"><a href="/messages/(unknown0[^"]*)"`, "Later submissions",
		},
		"/ambiguous?all=1": {
			`<th scope="row" class="mono"><a href="/messages/(unknown0[^"]*)"`, "Later submissions",
		},
		"/ambiguous#dead": {
			`<th scope="row" class="mono"><a href="/messages/(dead0000[^"]*)"`, "Older records",
		},
		"/audit":              {`<td>pause (route of-the-tenant-[0-9]+)</td>`, "Older entries"},
		"/audit?kind=message": {`<td>pause (route of-the-tenant-[0-9]+)</td>`, "Older entries"},
	} {
		next := regexp.MustCompile(`href="([^"]*)">` + tc.link)
		seen, pages := map[string]int{}, 0
		for at := strings.TrimSuffix(path, "#dead"); at != "" && pages < 20; pages++ {
			body := b.get(at).body
			rows := regexp.MustCompile(tc.row).FindAllStringSubmatch(body, -1)
			if len(rows) > pageRows {
				t.Errorf("%s has %d rows", at, len(rows))
			}
			for _, row := range rows {
				seen[row[1]]++
			}
			at = ""
			if link := next.FindStringSubmatch(body); link != nil {
				at = html.UnescapeString(link[1])
			}
		}
		if len(seen) != busyRows {
			t.Errorf("%s: %d rows on %d pages, want %d", path, len(seen), pages, busyRows)
		}
		for row, times := range seen {
			if times != 1 {
				t.Errorf("%s: %s is there %d times", path, row, times)
			}
		}
	}
}

// largeDay is a routing of these many routes with 40 channels each, for a report of as many rows.
func largeDay(routes int) string {
	var channels, weights strings.Builder
	for i := range 40 {
		fmt.Fprintf(&channels, "  provider-channel-%02d: {provider: sandbox, price: {currency: GBP, "+
			"default: \"0.031\"}}\n", i)
		fmt.Fprintf(&weights, "provider-channel-%02d: %d, ", i, i+1)
	}
	out := "timezone: Europe/London\nchannels:\n" + channels.String() + "routes:\n"
	for i := range routes - 1 {
		out += fmt.Sprintf("  - {name: route-of-tenant-%d, match: {tenant: shop-%d}, weights: {%s}}\n",
			i, i, weights.String())
	}
	return out + fmt.Sprintf("  - {name: route-of-tenant-%d, match: {}, weights: {%s}}\n",
		routes-1, weights.String())
}

// TestAReportOfALargeDayIsSmall: the page has the first rows, sentences and plots, and leads to the
// rest.
func TestAReportOfALargeDayIsSmall(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	routes := tier.Size(3, 8)
	c.apply(t, largeDay(routes))
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // It was read.
	// Each channel of each route has 12 messages: too many for those with a low weight.
	count := routes * 40 * 12
	for _, sql := range []string{
		`insert into dispatcher.messages (seq, id, lane, tenant, state, attempts, route,
		  routing_version, draw, draw_size, first_choice, segments, expires_at)
		select dispatcher.first_of(dispatcher.day_at(now())) + 1000 + n, 'large-' || n, 'otp',
		  'shop-' || n % $2, 'sending', 1, 'route-of-tenant-' || n % $2, 2, n % 820, 820,
		  'provider-channel-' || lpad((n / $2 % 40)::text, 2, '0'), 1, now()
		from generate_series(0, $1::int - 1) n`,
		`insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
		  segments, channel, reason, currency, settled_at, answers, outcome)
		select seq, 1, now(), 31000, 1, 1, first_choice, 'first_choice', 'GBP', now(), 1, 'accepted'
		from dispatcher.messages where id like 'large-%' and $1 + $2::int > 0`,
	} {
		if _, err := db.Exec(t.Context(), sql, count, routes); err != nil {
			t.Fatal(err)
		}
	}
	b := c.client(t, "finance")
	page := b.get("/reports")
	size := len(page.body)
	for _, asset := range []string{"console.css", "console.js", "icon.svg"} {
		size += len(b.get("/assets/" + asset).body)
	}
	t.Logf("it loads %d bytes", size)
	if page.StatusCode != http.StatusOK || size > largestPaint {
		t.Errorf("status %d, it loads %d bytes, more than %d", page.StatusCode, size, largestPaint)
	}
	rows := func(body string) int {
		return strings.Count(body, `<th scope="row">provider-channel-`)
	}
	if n := rows(page.body); n != mostReportRows || !strings.Contains(page.body, " more rows in the file") ||
		!strings.Contains(page.body, "more sentences") {
		t.Errorf("the page has %d rows: %s", n, page.body)
	}
	link := func(pattern string) answer {
		t.Helper()
		found := regexp.MustCompile(`href="(` + pattern + `)"`).FindStringSubmatch(page.body)
		if found == nil {
			t.Fatalf("no link %s in %s", pattern, page.body)
		}
		return b.get(html.UnescapeString(found[1]))
	}
	file := link(`/reports/rows\.csv\?[^"]*`)
	if n := strings.Count(file.body, ",provider-channel-"); n != routes*40 ||
		!strings.HasPrefix(file.Header.Get("Content-Type"), "text/csv") ||
		!strings.Contains(file.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file has %d rows, headers %v", n, file.Header)
	}
	all := link(`/reports\?[^"]*plots=all`)
	if few, many := strings.Count(page.body, "<svg class"), strings.Count(all.body,
		"<svg class"); few < 1 || many <= few {
		t.Errorf("%d plots, and %d of all", few, many)
	}
}
