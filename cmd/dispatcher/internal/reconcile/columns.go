package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is the meaning of a column.
type Field int

// Fields, in the order of errors and docs.
const (
	Reference Field = iota // the provider's id of the message, or of a part of it
	Number                 // of the recipient
	Time                   // when the provider took it
	Segments               // how many were billed
	Price                  // of the whole line
	UnitPrice              // of one segment, if the line has no Price
	Currency               // of the price
	Status                 // says whether the provider took it
	Direction              // marks messages of subscribers, which are skipped
	fieldCount
)

var fieldNames = [fieldCount]string{
	"reference", "number", "time", "segments", "price", "unit_price", "currency", "status",
	"direction",
}

func (f Field) String() string { return fieldNames[f] }

// Columns say which column of a file has which field.
type Columns struct {
	Preset string // the name of the preset
	// Names are the possible names of each field's column; the first that the file has is used. A
	// field without names is not read. Names are compared without case, spaces and punctuation.
	Names [fieldCount][]string
	// Currency is the currency of prices if the file has no column of it.
	Currency string
	// PartPerLine says that a line without segments is one segment.
	PartPerLine bool
	// Log says how the lines of a log are written; nil for a table with a row of column names.
	Log *logForm
	// Refused is what a status begins with if the provider did not take the message; nil for the
	// usual words.
	Refused []string
	// Digits is how many digits a reference has: zeros are put before a shorter one. 0 changes none.
	Digits int
	// Unverified says that no document of the vendor lists the columns of its file. The names are
	// those of its API, or of programs that read such files.
	Unverified bool
}

// logForm is how a log is written. Each line begins with the time.
type logForm struct {
	// Events mark submits: the line of a submit has one of them before its fields.
	Events []string
	// Fields are the names of the first fields, if these are separated by commas and follow the
	// event. Without Fields each is in brackets, with its name.
	Fields []string
	// Skip are fields, such as "retry:True", that mark lines to leave out: those that are not submits,
	// and those that another line of the same submit follows.
	Skip []string
}

// presets are the columns of vendors' exports and of the logs of common SMSCs.
var presets = map[string]Columns{
	// The message log that the console exports; the API names the same fields in small letters.
	"twilio": unverified(columns("reference=Sid number=To time=SentDate|DateSent "+
		"segments=NumSegments price=Price currency=PriceUnit status=Status direction=Direction", "USD")),
	// Reports API, product SMS.
	"vonage": columns("reference=message_id number=to time=date_received price=total_price "+
		"currency=currency status=status direction=direction", "EUR"),
	// Delivery report of a batch, type full.
	"sinch": unverified(columns("reference=batch_id number=recipient|to time=at|created_at "+
		"segments=number_of_message_parts status=status", "")),
	// Logs API.
	"infobip": unverified(columns("reference=messageId number=to time=sentAt|sendAt "+
		"segments=messageCount|messagesCount|smsCount unit_price=pricePerMessage "+
		"currency=currency status=status|groupName", "")),
	// Message detail records.
	"telnyx": unverified(columns("reference=id|uuid number=cld|to time=created_at|sent_at "+
		"segments=parts price=cost currency=currency status=status direction=direction", "USD")),
	// Message detail records, as the API names them, and as the console exports them.
	"plivo": columns("reference=message_uuid number=to_number|To time=message_time|Time "+
		"segments=units price=total_amount|TotalCharge(USD) status=message_state|Status "+
		"direction=message_direction|Direction", "USD"),
	"bird": unverified(columns("reference=id|message_id number=recipient|receiver "+
		"time=created_at|createdDatetime|created_datetime segments=message_parts|parts|segments "+
		"price=price|price_amount currency=currency|price_currency status=status "+
		"direction=direction", "")),
	// Daily usage report of SNS: a line for each part, all with the id of the message.
	"aws": perPart(columns("reference=MessageId number=DestinationPhoneNumber "+
		"time=PublishTimeUTC price=PriceInUSD status=DeliveryStatus", "USD")),
	// Access log of the bearerbox: a line for each part.
	"kannel": asLog(perPart(columns("reference=FID number=to time=time status=event", "")),
		logForm{Events: []string{
			"Sent SMS", "FAILED Send SMS", "DISCARDED Send SMS", "REJECTED Send SMS", "EXPIRED Send SMS",
		}}),
	// messages.log of the SMPP client manager. queue-msgid is the id that Jasmin answers with. Its
	// releases for Python 3 write numbers as b'447700900123' and refusals as ERROR/CommandStatus.X.
	// A refusal that Jasmin itself tries again is not an end: its last try has a line of its own.
	"jasmin": asLog(columns("reference=queue-msgid number=to time=time status=status", ""),
		logForm{Events: []string{"SMS-MT"}, Skip: []string{"retry:True"}}),
	// cdr.log of the Restcomm SMSC gateway: a line for each part, once it is delivered or given up.
	// Its answer to a submit has the MESSAGE_ID in ten digits.
	"restcomm": restcomm(asLog(perPart(columns("reference=MESSAGE_ID number=ADDR_DST_DIGITS "+
		"time=SUBMIT_DATE segments=MSG_PARTS status=MESSAGE_DELIVERY_STATUS", "")),
		logForm{
			Events: []string{"CdrGenerator]"},
			Fields: strings.Fields("SUBMIT_DATE ADDR_SRC_DIGITS ADDR_SRC_TON ADDR_SRC_NPI " +
				"ADDR_DST_DIGITS ADDR_DST_TON ADDR_DST_NPI MESSAGE_DELIVERY_STATUS ORIGINATION_TYPE " +
				"MESSAGE_TYPE ORIG_SYSTEM_ID MESSAGE_ID DVL_MESSAGE_ID RECEIPT_LOCAL_MESSAGE_ID " +
				"NNN_DIGITS IMSI CORR_ID ORIGINATOR_SCCP_ADDRESS MtServiceCenterAddress " +
				"ORIG_NETWORK_ID NETWORK_ID MPROC_NOTES MSG_PARTS"),
			Skip: []string{
				"MESSAGE_TYPE:dlr", "MESSAGE_DELIVERY_STATUS:temp_failed",
				"MESSAGE_DELIVERY_STATUS:temp_failed_esme", "MESSAGE_DELIVERY_STATUS:temp_failed_sip",
			},
		})),
	// Table sentitems of Gammu SMSD, as its users export it: a line for each part, all with the ID.
	"gammu": perPart(columns("reference=ID number=DestinationNumber time=SendingDateTime "+
		"status=Status", "")),
	// A file whose columns have the names of the fields.
	"plain": columns("reference=reference number=number time=time segments=segments price=price "+
		"unit_price=unit_price currency=currency status=status direction=direction", ""),
}

// Presets returns the names of all presets, sorted.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// PresetsForHelp are the names of all presets, with a word for those that are unverified.
func PresetsForHelp() string {
	names := Presets()
	for i, name := range names {
		if presets[name].Unverified {
			names[i] += " (unverified)"
		}
	}
	return strings.Join(names, ", ")
}

// columns parses a preset of the table above.
func columns(names, currency string) Columns {
	c := Columns{Currency: currency}
	if err := c.set(strings.Fields(names)); err != nil {
		panic(err) // a mistake in the table above
	}
	return c
}

func perPart(c Columns) Columns {
	c.PartPerLine = true
	return c
}

func unverified(c Columns) Columns {
	c.Unverified = true
	return c
}

func asLog(c Columns, form logForm) Columns {
	c.Log = &form
	return c
}

func restcomm(c Columns) Columns {
	c.Digits, c.Refused = 10, []string{"submit_failed", "mproc_rejected", "ocs_rejected"}
	return c
}

// NewColumns returns the columns of a preset, changed by fields such as "reference=Message ID". The
// name "a|b" stands for whichever column the file has; with an empty name the field is not read.
func NewColumns(preset string, fields []string) (*Columns, error) {
	c, ok := presets[preset]
	if !ok {
		return nil, fmt.Errorf("there is no preset %q; there are %s", preset,
			strings.Join(Presets(), ", "))
	}
	if err := c.set(fields); err != nil {
		return nil, err
	}
	// A caller that names columns has looked at the file.
	c.Preset, c.Unverified = preset, c.Unverified && len(fields) == 0
	switch {
	case c.Names[Reference] == nil && c.Names[Number] == nil:
		return nil, errors.New("neither reference nor number has a column, so nothing can be matched")
	case slices.Equal(c.Names[Reference], c.Names[Number]):
		return nil, errors.New("reference and number are the same column")
	}
	return &c, nil
}

func (c *Columns) set(fields []string) error {
	for _, one := range fields {
		name, column, ok := strings.Cut(one, "=")
		f := slices.Index(fieldNames[:], strings.TrimSpace(name))
		if !ok || f < 0 {
			return fmt.Errorf("%q is not a field with its column; write for example reference=Sid, "+
				"with one of %s", one, strings.Join(fieldNames[:], ", "))
		}
		c.Names[f] = nil
		if column = strings.TrimSpace(column); column != "" {
			c.Names[f] = strings.Split(column, "|")
		}
	}
	return nil
}

// plain is the name of a column without case, spaces and punctuation.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
}

// places finds the column of each field in a header, -1 for none.
func (c *Columns) places(header []string) (at [fieldCount]int) {
	at = [fieldCount]int{-1, -1, -1, -1, -1, -1, -1, -1, -1}
	for f := range fieldCount {
		for _, name := range c.Names[f] {
			if at[f] = slices.IndexFunc(header, func(h string) bool {
				return plain(h) == plain(name)
			}); at[f] >= 0 {
				break
			}
		}
	}
	return at
}

// wanted returns the names of all columns that are read.
func (c *Columns) wanted() (names []string) {
	for f := range fieldCount {
		names = append(names, c.Names[f]...)
	}
	return names
}
