package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
)

// options returns the options of a preset with other fields.
func options(t testing.TB, preset string, fields ...string) Options {
	t.Helper()
	c, err := NewColumns(preset, fields)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Columns: c, Zone: time.UTC}
}

// lines reads the lines of a text.
func lines(text string, o Options) (all []Line, skipped int, err error) {
	r, err := Open("file", strings.NewReader(text), o)
	if err != nil {
		return nil, 0, err
	}
	for {
		var l Line
		if err := r.Next(&l); errors.Is(err, io.EOF) {
			return all, r.Skipped, r.Close()
		} else if err != nil {
			return nil, 0, err
		}
		all = append(all, l)
	}
}

var ten = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// TestFilesOfVendors: a line of each preset, as its vendor writes it.
func TestFilesOfVendors(t *testing.T) {
	t.Parallel()
	one := Line{
		Row: 2, Reference: "r1", Number: "+447700900123", At: ten, Segments: 2, Nanos: 15_000_000,
		Priced: true, Currency: "USD", Taken: true,
	}
	with := func(change func(*Line)) Line {
		l := one
		change(&l)
		return l
	}
	euro := with(func(l *Line) { l.Currency = "EUR" })
	part := with(func(l *Line) { l.Segments = 1 })
	logged := Line{Row: 1, Reference: "r1", Number: "+447700900123", At: ten, Taken: true}
	for preset, c := range map[string]struct {
		text string
		want []Line
	}{
		"twilio": {
			"From,To,Body,Status,SentDate,ApiVersion,NumSegments,ErrorCode,AccountSid,Sid," +
				"Direction,Price,PriceUnit\n" +
				"ACME,+447700900123,\"a, \"\"b\"\"\nc\",delivered,2026-11-21T10:00:00Z,2010,2,,AC,r1," +
				"outbound-api,-0.01500,USD\n" +
				"+447700900123,+15005550006,STOP,received,2026-11-21T10:00:00Z,2010,1,,AC,r2," +
				"inbound,-0.00750,USD\n" +
				"ACME,+447700900123,x,failed,2026-11-21T10:00:00Z,2010,1,,AC,r3,outbound-api,0,USD\n",
			[]Line{with(func(l *Line) { l.Nanos = -l.Nanos }), {
				Row: 5, Reference: "r3", Number: one.Number, At: ten, Segments: 1, Priced: true,
				Currency: "USD",
			}},
		},
		"vonage": {
			"account_id,message_id,client_ref,direction,from,to,network,network_name,country," +
				"country_name,date_received,date_finalized,latency,status,error_code," +
				"error_code_description,currency,total_price\n" +
				"abc,r1,,outbound,ACME,447700900123,23410,Carrier Ltd,GB,United Kingdom," +
				"2026-11-21T10:00:00+0000,2026-11-21T10:00:02+0000,2274,delivered,0,Delivered,EUR," +
				"0.01500000\n",
			[]Line{with(func(l *Line) { l.Currency, l.Segments = "EUR", 0 })},
		},
		"sinch": {
			"batch_id,recipient,status,at,number_of_message_parts\n" +
				"r1,447700900123,Delivered,2026-11-21T10:00:00.000Z,2\n",
			[]Line{with(func(l *Line) { l.Currency, l.Nanos, l.Priced = "", 0, false })},
		},
		"infobip": {
			"Message Id;From;To;Sent At;Message Count;Price Per Message;Currency;Status\n" +
				"r1;ACME;447700900123;2026-11-21T10:00:00.000+0000;2;0.0075;EUR;DELIVERED_TO_HANDSET\n",
			[]Line{euro},
		},
		"telnyx": {
			"id,cld,created_at,parts,cost,currency,status,direction\n" +
				"r1,+447700900123,2026-11-21T10:00:00Z,2,0.015,USD,delivered,outbound\n",
			[]Line{one},
		},
		"plivo": {
			"message_uuid,to_number,message_time,units,total_amount,message_state,message_direction\n" +
				"r1,447700900123,2026-11-21 10:00:00+00:00,2,0.01500,delivered,outbound\n",
			[]Line{one},
		},
		"bird": {
			"id\trecipient\tcreated_at\tparts\tprice\tcurrency\tstatus\n" +
				"r1\t447700900123\t2026-11-21T10:00:00Z\t2\t0.015\tEUR\tdelivered\n",
			[]Line{euro},
		},
		"aws": {
			"PublishTimeUTC,MessageId,DestinationPhoneNumber,MessageType,DeliveryStatus,PriceInUSD," +
				"PartNumber,TotalParts\n" +
				"2026-11-21T10:00:00.000Z,r1,447700900123,Transactional,Message accepted,0.015,1,1\n" +
				"2026-11-21T10:00:00.000Z,r2,1XXX5550100,Promotional,Message accepted,0.015,0,1\n",
			[]Line{part, {
				Row: 3, Reference: "r2", At: ten, Segments: 1, Nanos: 15_000_000, Priced: true,
				Currency: "USD", Taken: true,
			}},
		},
		"kannel": {
			"2026-11-21 10:00:00 Sent SMS [SMSC:a] [SVC:u] [ACT:] [BINF:] [FID:r1] [META:] " +
				"[from:ACME] [to:+447700900123] [flags:-1:0:-1:0:31] [msg:20:a [to:+1] [FID:x] b] [udh:0:]\n" +
				"and more of the text [to:1]\n" +
				"2026-11-21 10:00:01 DLR SMS [SMSC:a] [FID:r1] [from:1] [to:+447700900123] [msg:0:]\n" +
				"2026-11-21 10:00:00 FAILED Send SMS [SMSC:a] [FID:] [to:+447700900123] [msg:1:b]\n",
			[]Line{
				{Row: 1, Reference: "r1", Number: one.Number, At: ten, Segments: 1, Taken: true},
				{Row: 4, Number: one.Number, At: ten, Segments: 1},
			},
		},
		"jasmin": {
			"2026-11-21 10:00:00,000 INFO     1234 SMS-MT [cid:c] [queue-msgid:r1] " +
				"[smpp-msgid:abc] [status:ESME_ROK] [prio:0] [dlr:SMSC_DELIVERY_RECEIPT_REQUESTED] " +
				"[validity:none] [from:ACME] [to:447700900123] [content:'x']\n" +
				"2026-11-21 10:00:00,000 INFO     1234 DLR [cid:c] [smpp-msgid:abc]\n" +
				"2026-11-21 10:00:00,000 INFO     1234 SMS-MT [queue-msgid:r2] [status:ESME_RTHROTTLED] " +
				"[to:447700900123]\n",
			[]Line{logged, {Row: 3, Reference: "r2", Number: one.Number, At: ten}},
		},
		"restcomm": {
			cdr("success_esme", "message", "11", "1") +
				cdr("temp_failed", "message", "12", "0") +
				cdr("partial", "message", "13", "0") + cdr("success", "message", "13", "0") +
				cdr("success", "dlr", "14", "0") + cdr("failed", "message", "15", "3") +
				cdr("submit_failed_esme", "message", "0", "0") +
				"2026-11-21 10:00:00,000 DEBUG [org.mobicents.smsc.library.CdrDetailedGenerator] 1,2\n",
			[]Line{
				{Row: 1, Reference: "0000000011", Number: one.Number, At: ten, Segments: 1, Taken: true},
				{Row: 3, Reference: "0000000013", Number: one.Number, At: ten, Segments: 1, Taken: true},
				{Row: 4, Reference: "0000000013", Number: one.Number, At: ten, Segments: 1, Taken: true},
				{Row: 6, Reference: "0000000015", Number: one.Number, At: ten, Segments: 3, Taken: true},
				{Row: 7, Reference: "0000000000", Number: one.Number, At: ten, Segments: 1},
			},
		},
		"gammu": {
			"UpdatedInDB;SendingDateTime;Text;DestinationNumber;UDH;TextDecoded;ID;SequencePosition;" +
				"Status;StatusError;StatusCode\n" +
				`"2026-11-21 10:00:09";"2026-11-21 10:00:00";"0061";"+447700900123";"";"a";"r1";"1";` +
				`"DeliveryOK";"-1";"-1"` + "\n" +
				`"2026-11-21 10:00:09";"2026-11-21 10:00:00";"0061";"+447700900123";"";"a";"r1";"2";` +
				`"SendingError";"-1";"500"` + "\n",
			[]Line{
				{Row: 2, Reference: "r1", Number: one.Number, At: ten, Segments: 1, Taken: true},
				{Row: 3, Reference: "r1", Number: one.Number, At: ten, Segments: 1},
			},
		},
		"plain": {
			"\xef\xbb\xbfreference,number,time,segments,price,currency\n" +
				"r1,0044 7700 900-123,2026-11-21 10:00,2,0.015,USD\n,,,,,\n,Total,,,,\n",
			[]Line{one},
		},
	} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			got, _, err := lines(c.text, options(t, preset))
			if (err != nil) != (c.want == nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// cdr is a line of cdr.log of the Restcomm SMSC gateway, as its loggers of JBoss 5 write it.
func cdr(status, kind, id, parts string) string {
	return "2026-11-21 10:00:07,123 DEBUG [org.mobicents.smsc.library.CdrGenerator] " +
		"2026-11-21 10:00:00.000,ACME,5,0,447700900123,1,1," + status + ",SMPP," + kind + ",esme1," +
		id + ",null,null,null,null,null,null,null,0,0,null," + parts + `,0,,,,,0,"a b","",,,` + "\n"
}

// TestTheLogOfRestcomm: WildFly's logger writes the thread too. Older versions have fewer fields.
func TestTheLogOfRestcomm(t *testing.T) {
	t.Parallel()
	line := cdr("success", "message", "11", "2")
	threaded := strings.Replace(line, "] 2026", "] (EventRouter-0) 2026", 1)
	want := []Line{{
		Row: 1, Reference: "0000000011", Number: "+447700900123", At: ten, Segments: 2, Taken: true,
	}}
	got, _, err := lines(threaded, options(t, "restcomm"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	before, _, _ := strings.Cut(line, ",null")
	if _, _, err := lines(before+"\n", options(t, "restcomm")); err == nil ||
		!strings.Contains(err.Error(), "file: line 1: it has 12 fields, and the preset knows logs of") {
		t.Errorf("got %v", err)
	}
}

// TestPresetsSayWhetherADocumentShowsTheirColumns: help names those that are unverified, and so
// does the page. A caller that names columns has looked at the file.
func TestPresetsSayWhetherADocumentShowsTheirColumns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reconcile.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for preset, verified := range map[string]bool{
		"aws": true, "bird": false, "gammu": true, "infobip": false, "jasmin": true, "kannel": true,
		"plain": true, "plivo": true, "restcomm": true, "sinch": false, "telnyx": false,
		"twilio": false, "vonage": true,
	} {
		if options(t, preset).Columns.Unverified == verified {
			t.Errorf("%s: verified should be %t", preset, verified)
		}
		if options(t, preset, "status=").Columns.Unverified {
			t.Errorf("%s is unverified with columns of the user", preset)
		}
		if strings.Contains(PresetsForHelp(), preset+" (unverified)") == verified {
			t.Errorf("help has %s, and %s is verified: %t", PresetsForHelp(), preset, verified)
		}
		if strings.Contains(string(page), "| `"+preset+"` | unverified |") == verified ||
			preset != "plain" && !strings.Contains(string(page), "| `"+preset+"` | document |") == verified {
			t.Errorf("the page should say of %s that it is verified: %t", preset, verified)
		}
		all = append(all, preset)
	}
	if slices.Sort(all); !slices.Equal(all, Presets()) {
		t.Errorf("there are %v, not %v", Presets(), all)
	}
}

// TestTheLogOfJasminForPython3 has numbers as Python prints bytes. A refusal that Jasmin tries
// again is not the end of the message.
func TestTheLogOfJasminForPython3(t *testing.T) {
	t.Parallel()
	line := func(status, fields string) string {
		return "2026-11-21 10:00:00 INFO     1 SMS-MT [cid:c] " + fields + " [status:" + status +
			"] [prio:0] [dlr:RegisteredDeliveryReceipt.SMSC_DELIVERY_RECEIPT_REQUESTED] " +
			"[validity:none] [from:b'ACME'] [to:b'447700900123'] [content:b'x] [to:1]'] [tlvs:none]\n"
	}
	text := line("ERROR/CommandStatus.ESME_RTHROTTLED", "[queue-msgid:r1] [retry:True]") +
		line("CommandStatus.ESME_ROK", "[queue-msgid:r1] [smpp-msgid:b'abc']") +
		line("ERROR/CommandStatus.ESME_RINVDSTADR", "[queue-msgid:r2] [retry:False]")
	want := []Line{
		{Row: 2, Reference: "r1", Number: "+447700900123", At: ten, Taken: true},
		{Row: 3, Reference: "r2", Number: "+447700900123", At: ten},
	}
	got, _, err := lines(text, options(t, "jasmin"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	want = []Line{{Row: 1, Reference: "abc", Number: "+447700900123", At: ten, Taken: true}}
	got, _, err = lines(line("CommandStatus.ESME_ROK", "[queue-msgid:r1] [smpp-msgid:b'abc']"),
		options(t, "jasmin", "reference=smpp-msgid"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestTheConsolesExportOfPlivo: it has other columns than the API.
func TestTheConsolesExportOfPlivo(t *testing.T) {
	t.Parallel()
	columns, err := NewColumns("plivo", nil)
	if err != nil {
		t.Fatal(err)
	}
	header := strings.Split("Message UUID,From,To,To Country ISO2,Direction,Message Time,Status,"+
		"Error Code,Error Reason,Units,Rate Per Unit (USD),Carrier Surcharge Per Unit (USD),"+
		"Total Charge Per Unit (USD),Total Charge (USD)", ",")
	at := columns.places(header)
	want := [fieldCount]int{
		Reference: 0, Number: 2, Time: 5, Segments: 9, Price: 13, UnitPrice: -1, Currency: -1,
		Status: 6, Direction: 4,
	}
	if at != want {
		t.Errorf("%v, want %v", at, want)
	}
}

// TestEveryPresetIsRight: the names of its fields are known.
func TestEveryPresetIsRight(t *testing.T) {
	t.Parallel()
	for _, name := range Presets() {
		if _, err := NewColumns(name, nil); err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// TestAnInvoiceAsXLSX: below an address, with numbers as spreadsheets store them, and a total.
func TestAnInvoiceAsXLSX(t *testing.T) {
	t.Parallel()
	book := excelize.NewFile()
	day := ten.Add(30 * time.Second)
	for i, row := range [][]any{
		{"Carrier Ltd"},
		{"Invoice", 4711},
		{},
		{"Message ID", "Recipient", "Sent", "Parts", "Net"},
		{"r1", 447700900123, day, 2, 0.0075},
		{"r2", "+447700900456", "2026-11-21 10:00:30", 1, 0.1 + 0.2},
		{"", "", "", "", 0.3075},
	} {
		if err := book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := book.Write(&file); err != nil {
		t.Fatal(err)
	}
	o := options(t, "plain", "reference=message id", "number=recipient", "time=sent",
		"segments=parts", "price=net")
	o.Currency = "EUR"
	got, skipped, err := lines(file.String(), o)
	want := []Line{
		{
			Row: 5, Reference: "r1", Number: "+447700900123", At: day, Segments: 2, Nanos: 7_500_000,
			Priced: true, Currency: "EUR", Taken: true,
		},
		{
			Row: 6, Reference: "r2", Number: "+447700900456", At: day, Segments: 1,
			Nanos: 300_000_000, Priced: true, Currency: "EUR", Taken: true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || skipped != 1 {
		t.Error(diff, err, skipped)
	}
}

// TestErrorsNameTheirPlace: file, line and column, and never a number.
func TestErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	header := "reference,number,time,segments,price,currency\n"
	for text, want := range map[string]string{
		"":                                       "no row of column names",
		"a,b\n+447700900123,x\n":                 "its columns are a, b: name them with --columns",
		"+447700900123,7700900456\n,\n":          "its columns are ..., ...: name",
		"\xff\xfer\x00":                          "save it as CSV in UTF-8",
		"\x1f\x8b\x08\x00":                       "uncompress it",
		"PK\x03\x04 no archive":                  "cannot be read as XLSX (if it is a ZIP",
		header + "r1,7700900123x,,,,\n":          "",
		header + "r1,1e3 447700900123,,,,\n":     `line 2, column "number": a spreadsheet has rounded`,
		header + "r1,4.47701E+11,,,,\n":          `column "number": a spreadsheet has rounded`,
		header + "r1,123,,,,\n":                  `column "number": this is not a number in international`,
		header + "447700900123,+447700900123\n":  `column "reference": this is the number`,
		header + "a b,,,,,\n":                    `column "reference": this is not an id`,
		header + "\nr1,,21.13.2026,,,\n":         `line 3, column "time": this is not a time`,
		header + "r1,,1926-11-21 10:00,,,\n":     `column "time": the year 1926`,
		header + "r1,,2026-11-21 10:00 CET,,,\n": `column "time"`,
		header + "r1,,,two,,\n":                  `column "segments": this is not a number of segments`,
		header + "r1,,,1,0.0000000001,EUR\n":     `column "price": the price has more than nine`,
		header + "r1,,,1,\"0,031\",EUR\n":        "",
		header + "r1,,,1,\"0,03\",EUR\n":         `column "price": this is not a price; if its comma`,
		header + "r1,,,1,5,\n":                   `column "currency": the currency is not a code`,
		header + "r1,,,1,5,Euro\n":               `column "currency": the currency is not a code`,
		header + "r1,,,1,free,EUR\n":             `column "price": this is not a price`,
	} {
		_, _, err := lines(text, options(t, "plain"))
		if want == "" {
			if err != nil {
				t.Errorf("%q: got error %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "file") || strings.Contains(err.Error(), "7700900") {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// TestPricesAreExact: in billionths, whatever text is around them.
func TestPricesAreExact(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"0": 0, "0.00": 0, ".5": 500_000_000, "5": 5e9, "0.00645833": 6_458_330,
		"-0.0075": -7_500_000, "-$": -1, "€-0.031": -31_000_000, "€0.031": 31_000_000, "0.031 EUR": 31_000_000, "EUR 1,234.5": 1234.5e9,
		"7.4999999999999997E-3": 7_500_000, "1,234,567.89": -1, "999,999": 999_999e9,
		"1.000000000": 1e9, "0.1234567891": -1, "1e400": -1, "": -1, "-": -1, "NaN": -1, "1,2": -1,
	} {
		got, _, err := parsePrice(s, false)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, not %d", s, got, want)
		}
	}
	for s, want := range map[string]int64{"0,0075": 7_500_000, "1.234,5 €": 1234.5e9, "1.5": -1} {
		got, _, err := parsePrice(s, true)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, not %d", s, got, want)
		}
	}
}

func TestDaysWithSlashesBeginWithTheMonthOrTheDay(t *testing.T) {
	t.Parallel()
	for dayFirst, want := range map[bool]string{
		false: "2026-03-04 09:05", true: "2026-04-03 09:05",
	} {
		got, err := parseTime("03/04/2026 09:05", time.UTC, dayFirst)
		if err != nil || got.Format("2006-01-02 15:04") != want {
			t.Errorf("day first %t: %v, %v, not %s", dayFirst, got, err, want)
		}
	}
}

// TestPairsByNumberTimeAndSegments: a table of lines (l) and attempts (a), by minute and segments.
func TestPairsByNumberTimeAndSegments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given string
		want  string
	}{
		"one of each":                    {"a1:0/1 l1:3/1", "a1-l1!"},
		"too far apart":                  {"a1:0/1 l1:11/1", ""},
		"other segments":                 {"a1:0/1 l1:3/2", ""},
		"a line that does not tell":      {"a1:0/3 l1:3/0", "a1-l1!"},
		"as many as can be":              {"l1:0/1 a1:9/1 l2:12/1 a2:20/1", "a1-l1! a2-l2!"},
		"two attempts, one line":         {"a1:0/1 a2:1/1 l1:2/1", "a1-l1"},
		"two attempts of other segments": {"a1:0/1 a2:1/2 l1:2/2", "a2-l1"},
		"a second line":                  {"a1:0/1 l1:2/1 l2:3/1", "a1-l1!"},
		"another cluster":                {"a1:0/1 l1:1/1 a2:60/1", "a1-l1!"},
		"exact before any":               {"a1:0/1 a2:1/2 l1:2/0 l2:3/1", "a1-l2! a2-l1!"},
	} {
		p := Pairer{Within: 10 * time.Minute}
		for one := range strings.FieldsSeq(c.given) {
			var kind rune
			var id, minute, segments int
			if _, err := fmt.Sscanf(one, "%c%d:%d/%d", &kind, &id, &minute, &segments); err != nil {
				t.Fatal(err)
			}
			if pairs := p.Add(Candidate{
				Line: kind == 'l', ID: int64(id), Number: 7, Segments: segments,
				At: ten.Add(time.Duration(minute) * time.Minute),
			}); len(pairs) > 0 {
				t.Error("got pairs of a number that may still have lines")
			}
		}
		var got []string
		for _, pair := range p.End() {
			one := fmt.Sprintf("a%d-l%d", pair.Attempt, pair.Line)
			if pair.Sure {
				one += "!"
			}
			got = append(got, one)
		}
		if slices.Sort(got); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, not %s", name, got, c.want)
		}
	}
}

// TestNothingIsPairedTwice: among random candidates. Each pair has one number, and times close
// together.
func TestNothingIsPairedTwice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var all []Candidate
		for id := range int64(60) {
			c := Candidate{
				Line: random.IntN(2) == 0, ID: id + 1, Number: random.Int64N(4),
				At: ten.Add(time.Duration(random.IntN(60)) * time.Minute), Segments: random.IntN(3),
			}
			all = append(all, c)
			if c.Line && random.IntN(4) == 0 { // under two keys
				c.Number += 100
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b Candidate) int {
			if a.Number != b.Number {
				return int(a.Number - b.Number)
			}
			return a.At.Compare(b.At)
		})
		p, seen := Pairer{Within: 5 * time.Minute}, map[int64]bool{}
		check := func(pairs []Pair) {
			for _, pair := range pairs {
				a, l := all[index(all, pair.Attempt)], all[index(all, pair.Line)]
				if seen[a.ID] || seen[l.ID] || a.Line || !l.Line || a.Number%100 != l.Number%100 ||
					a.At.Sub(l.At).Abs() > p.Within || l.Segments != 0 && l.Segments != a.Segments {
					t.Errorf("seed %d: %+v with %+v", seed, a, l)
				}
				seen[a.ID], seen[l.ID] = true, true
			}
		}
		for _, c := range all {
			check(p.Add(c))
		}
		check(p.End())
	}
}

func index(all []Candidate, id int64) int {
	return slices.IndexFunc(all, func(c Candidate) bool { return c.ID == id })
}

// FuzzOpen: any file yields lines, or an error that shows no number.
func FuzzOpen(f *testing.F) {
	f.Add("plain", "reference,number,time,segments,price,currency\nr1,+447700900123,45000.5,1,0.1,EUR\n")
	f.Add("kannel", "2026-11-21 10:00:00 Sent SMS [FID:r1] [to:+447700900123] [msg:1:]\n")
	f.Add("restcomm", cdr("success", "message", "11", "2"))
	f.Add("twilio", "Sid;To;Price\n1;2;3\n")
	f.Add("plain", "PK\x03\x04")
	f.Fuzz(func(t *testing.T, preset, text string) {
		c, err := NewColumns(preset, nil)
		if err != nil {
			return
		}
		all, _, err := lines(text, Options{Columns: c, Zone: time.UTC})
		if err != nil && strings.Contains(err.Error(), "447700900123") {
			t.Error(err)
		}
		for _, l := range all {
			if l.Number != "" && (l.Number[0] != '+' || len(l.Number) > 16) || l.Nanos < 0 ||
				l.Segments < 0 || l.Priced && !isCurrency(l.Currency) {
				t.Errorf("got %+v", l)
			}
		}
	})
}
