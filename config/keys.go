package config

import (
	"fmt"
	"strings"
	"time"

	"dispatcher/admission"
)

// Part is one mapping of the routing document: the keys that it may have. The code that reads a
// mapping refuses all other keys, and docs/configuration.md has a table for each part.
type Part struct {
	Name string // in the page
	Keys []Key
}

// Key is one key of a part. Default and Meaning are Markdown; links are as seen from docs/.
type Key struct {
	Name    string
	Short   string // another spelling, for a list of one value
	Default string // "required", or empty where the meaning says it
	Meaning string
}

// names lists the keys, and their other spellings, for error messages.
func (p *Part) names() []string {
	var out []string
	for _, k := range p.Keys {
		out = append(out, k.Name)
		if k.Short != "" {
			out = append(out, k.Short)
		}
	}
	return out
}

// Parts lists every part of the routing document, outermost first.
func Parts() []*Part {
	return []*Part{
		documentPart, channelPart, activePart, receiptsPart, pricePart, contractPart, sendersPart,
		senderRulePart, limitPart, policyPart, routePart, matchPart, quietPart, expressionPart,
		functionPart, healthPart, healthReceiptsPart, noReceiptPart, lanePart, ratesPart, blockedPart,
		allowedPart, pausedPart, guardPart, inboundPart, sourcePart, keywordsPart,
	}
}

const (
	required = "required"
	none     = "none"
)

// code writes a default as the document writes it.
func code(value any) string {
	if d, ok := value.(time.Duration); ok {
		value = period(d)
	}
	return fmt.Sprintf("`%v`", value)
}

// byLane is a default that depends on the name of the lane.
func byLane(of func(Lane) any) string {
	other := code(of(newLane("")))
	var out strings.Builder
	for _, l := range standardLanes {
		if value := code(of(l)); value != other {
			out.WriteString(value + " for " + l.Name + ", ")
		}
	}
	return out.String() + "else " + other
}

var documentPart = &Part{"document", []Key{
	{"timezone", "", "`UTC`", "where a business day begins and ends, for limits of a day and for " +
		"reports"},
	{"channels", "", required, "mapping from name to [channel](#a-channel). Commands and reports " +
		"list channels in this order"},
	{"routes", "", required, "list of [routes](#a-route). The first route that matches takes the " +
		"message"},
	{"lanes", "", "`otp`, `transactional`, `bulk`", "mapping from name to [lane](#a-lane), most " +
		"urgent first"},
	{"limits", "", none, "list of [limits](#limits) over all channels, each of a tenant or a " +
		"prefix"},
	{"rates", "", none, "[rates](#rates) that convert prices of several currencies, so that they " +
		"can be compared"},
	{"allowed", "", none, "the only countries that messages are sent to: [allowed countries]" +
		"(#allowed-countries)"},
	{"country_groups", "", none, "mapping from a name to countries, `{dach: [DE, AT, CH]}`: the " +
		"name may stand in every list of [countries](#countries)"},
	{"blocked", "", none, "numbers that get no message: [blocked numbers](#blocked-numbers)"},
	{"paused", "", none, "what is not sent for now: [paused](#paused)"},
	{"guards", "", none, "list of [guards](#guards), which stop or report traffic that is not like " +
		"that of the days before"},
	{"inbound", "", "", "to which tenant a message from a subscriber belongs: [inbound](#inbound)"},
}}

var channelPart = &Part{"channel", []Key{
	{"provider", "", required, "`smpp`, `sandbox`, `httpapi`, or the name of a vendor: " +
		"[providers.md](providers.md). A sandbox channel needs no settings"},
	{"settings", "", "", "for the adapter; the page of the provider lists them. A secret is " +
		"refused: write it into a file in `DISPATCHER_SECRETS_DIR` and name the file, as in " +
		"`password_file: a.secret`. See [secrets](#secrets)"},
	{"capacity", "", code(defaultCapacity), "attempts in flight that count as full load. The " +
		"load ratio is attempts in flight / capacity"},
	{"limits", "", none, "list of [limits](#limits). All of them apply at once, over all processes"},
	{"admission", "", "`exact`", "how regions and processes share the slots of the limits: " +
		"[policies](#policies)"},
	{"active", "", "no limit", "how many attempts may be in flight at once: [active](#active)"},
	{"receipts", "", "where the provider sends them", "whether the dispatcher waits for " +
		"receipts, and how long: [receipts](#receipts)"},
	{"state", "", "`enabled`", "`enabled`, `draining` or `disabled`. A draining or disabled " +
		"channel gets no attempt. Use draining for a time, disabled for good"},
	{"labels", "", none, "texts and numbers that a message's labels and selectors are compared " +
		"with"},
	{"price", "", none, "what one segment costs: [prices](#prices)"},
	{"contract", "", none, "what was agreed with the provider for each month: " +
		"[contract](#contract)"},
	{"senders", "", "any", "which sender ids the channel may carry: [senders](#senders)"},
	{"test", "", code(false), "`true` marks a channel that sends nothing; it needs no settings"},
}}

var activePart = &Part{"active", []Key{
	{"max", "", required, "attempts in flight at once"},
	{"until", "", code(untilSubmit), "`submit`: an attempt counts until its submit is answered. " +
		"`receipt`: until its receipt comes or `hold` has passed"},
	{"hold", "", code(defaultHold) + " with `until: receipt`, else `0s`", "1s to 24h: how long a " +
		"slot is kept for the receipt, and for the retry of a throttled attempt on this channel. " +
		"`0s`, only with `until: submit`, keeps none: the retry takes a new slot"},
}}

var receiptsPart = &Part{"receipts", []Key{
	{"within", "", code(DefaultReceiptsWithin) + " where receipts come", "1s to 30d: how long " +
		"the receipt of an accepted message is awaited. Then the message is `no_receipt`"},
}}

var contractPart = &Part{"contract", []Key{
	{"unit", "", code(admission.Messages), "`messages`, `segments` or `money`, of what was accepted"},
	{"commitment", "", none, "the least to buy in a month; money as a decimal of the " +
		"channel's currency"},
	{"cap", "", none, "the most to buy in a month. It limits nothing; [limits](#limits) do"},
	{"begins", "", code(1), "1 to 28: the day on which a month of the contract begins"},
}}

var pricePart = &Part{"price", []Key{
	{"currency", "", required, "ISO 4217, such as `GBP`. Later lists of a channel have the same " +
		"one and may leave it out"},
	{"from", "", "", "when the list begins: a date, whose midnight in `timezone` counts, or a " +
		"time such as `2026-12-01T09:00:00Z`. Required in every list but the first"},
	{"default", "", required, "price of one segment: a decimal with at most six digits after the " +
		"point"},
	{"prefixes", "", none, "mapping from the beginning of the number to its price, `{\"+336\": " +
		"\"0.043\"}`"},
	{"countries", "", none, "mapping from [country](#countries) to its price, `{fr: \"0.045\"}`"},
	{"networks", "", none, "mapping from MCC, or MCC and MNC, to its price, `{\"20801\": " +
		"\"0.039\"}`"},
}}

var sendersPart = &Part{"senders", []Key{
	{"default", "", "the adapter's own", "sender of messages that name none. The rules apply to " +
		"it too"},
	{"rules", "", none, "list of rules. The first whose countries include the recipient's " +
		"applies; without such a rule any sender passes"},
}}

var senderRulePart = &Part{"sender rule", []Key{
	{"countries", "country", "all", "two-letter codes of [countries](#countries). A rule without " +
		"them stands last"},
	{"allow", "", none, "kinds of senders that pass: `alphanumeric` (up to 11 characters of the " +
		"GSM alphabet, not all digits), `short_code` (3 to 8 digits), `long_code` (8 to 15 " +
		"digits with a plus, or 9 to 15 without)"},
	{"ids", "id", none, "senders that pass, exactly as written, such as registered ones"},
	{"from", "", none, "replaces a sender that does not pass, and is the sender of messages " +
		"without one"},
}}

var limitPart = &Part{"limit", []Key{
	{"window", "", required, "`1s`, `1m`, `1h` or `1d`, or the same length in other units, such " +
		"as `60s`. A day begins at midnight in `timezone`, so it has 23 or 25 hours when the " +
		"clocks change. `prepaid` has no end: [budgets](#prepaid-budgets)"},
	{"max", "", required, "units in one window. `0` closes: messages fall back or wait. Money is " +
		"a decimal with at most six digits after the point, in whole units of the currency, at " +
		"most a billion. A prepaid budget has none"},
	{"unit", "", "`messages`", "`messages`: an attempt counts one. `segments`: its billed parts. " +
		"`money`: its price when it is claimed; what is not billed [comes " +
		"back](admission.md#money-that-comes-back) in the same window"},
	{"currency", "", "of the channel's price", "of a limit in money. On a channel it must be " +
		"that of its price. Over all channels it is required, and every channel with a price " +
		"must use it"},
	{"sliding", "", code(false), "`true`: the limit applies to every span of the window's " +
		"length, not only to calendar windows. Not for money"},
	{"burst", "", "[see below](#the-burst-of-a-sliding-limit)", "of a sliding limit: units that " +
		"may come at once, at most `max`"},
	{"reserve", "", none, "parts of each window that are kept for lanes, `{otp: 20%}`: 1 to 100 " +
		"%, together at most 100 %. Each shrinks to nothing in the last tenth of the window, so " +
		"that nothing is wasted. Not on a sliding limit, whose burst any lane may take"},
	{"tenant", "", "all", "counts only the messages of this tenant. `\"*\"` means that [each " +
		"tenant](#a-limit-of-each-tenant) has such a limit. Over all channels, `tenant` " +
		"or `prefix` is required"},
	{"prefix", "", "all", "counts only messages to numbers that begin so, `\"+44\"`. Not " +
		"together with `tenant`"},
}}

var policyPart = &Part{"policy", []Key{
	{"policy", "", required, "`exact`, `even`, `curve` or `counter`"},
	{"curve_factor", "", code(defaultCurveFactor), "the exponent of `curve`, above 0"},
}}

var routePart = &Part{"route", []Key{
	{"name", "", required, "appears in records and reports"},
	{"match", "", "all messages", "which messages the route takes: [match](#match)"},
	{"mode", "", "`weighted`", "how the first choice is made: `weighted`, `round_robin`, " +
		"`longest_idle`, `best_worker` or `order`. See [modes](#modes)"},
	{"weights", "", "", "mapping from channel to weight: a decimal with at most nine digits " +
		"after the point. Weights need not add up to 100. A channel of weight 0 is never drawn. " +
		"Required by `weighted` and `redraw`"},
	{"channels", "", "", "list of channels, in place of `weights`, for a route that does not draw"},
	{"fallback", "", "`load_ratio`, with mode `order` `order`", "how the other channels are " +
		"ranked when the first choice cannot take the message: `load_ratio`, `best_worker`, " +
		"`round_robin`, `redraw` or `order`. See [fallbacks](#fallbacks)"},
	{"sticky", "", code(false), "`weighted` only. `true`: the first choice is drawn by the " +
		"recipient's number, so that a recipient stays on one channel: [sticky](#sticky)"},
	{"quiet", "", none, "hours in which the route sends nothing: [quiet hours](#quiet-hours)"},
	{"wait", "", "`0s`", "`weighted` only: how long a message waits for its first choice before " +
		"a fallback may take it, counted from its arrival or its `send_at`. The wait ends 5 s " +
		"before the message's deadline. For a first choice that answers promptly and is only " +
		"full (`in_flight`) it is at least 10 s"},
	{"scoring", "", "`default`", "how `best_worker` scores: [scoring](#scoring). Refused on a " +
		"route that ranks nothing by `best_worker`"},
	{"health", "", "off", "lowers the weight of a channel that fails: [health " +
		"weighting](#health-weighting)"},
	{"no_receipt", "", "off", "sends an accepted message on to the next channel when no receipt " +
		"came in time: it may arrive twice, and both are paid. See [without a " +
		"receipt](#without-a-receipt)"},
	{"bypass_selectors", "", code(false), "`true`: a channel that fails a message's selectors " +
		"may still take it"},
	{"max_segments", "", code(defaultMaxSegments), "1 to 255. A channel on which a text takes " +
		"more is passed over with `too_long`; a text that is too long on every channel becomes a " +
		"dead letter (`too_many_segments`). Texts are never cut"},
	{"substitute", "", code(false), "`true` replaces look-alikes such as curly quotes and dashes " +
		"when the text then fits the GSM alphabet, or takes fewer segments with national tables: " +
		"[text.md](text.md)"},
	{"price_cap", "", none, "the most that one **message** may cost, all its segments together, " +
		"by currency: `{EUR: \"0.20\"}`. A channel that would cost more is passed over with " +
		"`price_cap`"},
	{"allowed_countries", "allowed_country", "all", "two-letter codes of the only countries that " +
		"the route carries messages to: [allowed countries](#allowed-countries)"},
	{"throttled", "", code(throttleds[0]), "when a channel says \"slow down\": `next` tries " +
		"another channel, `wait` keeps the message for this one"},
	{"tolerance", "", "`2`", "0 to 100 percentage points: how far a channel may be from its " +
		"agreed share before the [daily report](audit.md#the-verdicts) says that traffic moved"},
}}

var matchPart = &Part{"match", []Key{
	{"prefixes", "prefix", "all", "beginnings of the number, `[\"+44\", \"+353\"]`; one of them " +
		"must fit"},
	{"countries", "country", "all", "two-letter codes, `[GB, IE]`: [countries](#countries)"},
	{"tenants", "tenant", "all", "tenants of the envelope"},
	{"lanes", "lane", "all", "lanes of this document"},
	{"senders", "sender", "all", "the message's `from`, exactly as it is written"},
	{"hours", "", "always", "times of the week, in `timezone`, at which the message came or is to " +
		"be sent: [hours](#hours)"},
	{"labels", "", "all", "labels that the message must have, with these values"},
}}

var expressionPart = &Part{"expression", []Key{
	{"expression", "", required, "the formula"},
	{"descending", "", code(true), "`false`: the lowest score first"},
}}

var functionPart = &Part{"function", []Key{
	{"function", "", required, "an `http` or `https` URL without user, password, or a secret in " +
		"its query: the document is stored and shown"},
	{"token_file", "", none, "file in `DISPATCHER_SECRETS_DIR` whose content is sent as " +
		"`Authorization: Bearer ...`. Over `http` anybody on the way can read it"},
	{"allow_private", "", code(false), "`true` allows addresses of private networks and of this " +
		"machine. The address is checked after it is resolved, on every call"},
	{"batch", "", code(false), "`true`: up to `batch_size` candidates in one call. `false`: one " +
		"call for each candidate"},
	{"batch_size", "", code(defaultBatchSize), fmt.Sprintf("1 to %d", maxBatchSize)},
	{"parameters", "", none, "texts and numbers that are sent with every call"},
	{"deadline", "", code(defaultDeadline), fmt.Sprintf("%s to %s, for all calls about one message "+
		"together", period(minDeadline), period(maxDeadline))},
	{"cache", "", code(defaultCache), "0 to 24h: how long the answer to an equal question is " +
		"reused. `0` asks for every message"},
	{"descending", "", code(true), "`false`: the lowest score first"},
}}

var healthPart = &Part{"health", []Key{
	{"errors", "", required, "1 to 1000000: this many refused or unanswered attempts make a " +
		"channel bad. Refusals because of the message itself do not count " +
		"([`unfit`](providers.md#what-a-refusal-does-to-the-breaker)), nor do attempts that " +
		"the dispatcher did not send"},
	{"window", "", code(defaultHealthWindow), "1s to 1h: within this time"},
	{"step", "", code(defaultHealthStep), "1 to 99: percent of the configured weight in one move"},
	{"floor", "", code(defaultHealthFloor), "1 to 99: percent of the configured weight that " +
		"always remains, so that a recovery is noticed"},
	{"interval", "", code(defaultHealthInterval), "1s to 24h: time between two moves of the route"},
	{"quiet", "", code(defaultHealthQuiet) + ", or a longer `window`", "`window` to 24h: time " +
		"with fewer errors before a weight rises. Also no shorter than the `window` of `receipts`"},
	{"receipts", "", "off", "[receipts](#receipts-in-health-weighting) weigh like errors"},
}}

var noReceiptPart = &Part{"no receipt", []Key{
	{"after", "", required, "5s to 24h: the message is sent on this long after the provider's " +
		"answer, unless a final receipt has come. Shorter than the time " +
		"for which [receipts](receipts.md#settings) are awaited"},
}}

var healthReceiptsPart = &Part{"health receipts", []Key{
	{"delivered", "", required, "1 to 99: percent of the accepted messages. A channel that " +
		"delivers fewer in time, by more than chance explains, is bad"},
	{"within", "", code(defaultReceiptsIn), "1s to 1h: a message that is delivered later after " +
		"the provider's answer counts as not delivered"},
	{"window", "", code(defaultReceiptsWindow), "1s to 1h: the period whose messages are counted. " +
		"It ends `within` ago, so that each receipt had time to come"},
	{"least", "", code(defaultReceiptsLeast), fmt.Sprintf("%d to 1000000: with fewer messages in the "+
		"window nothing is concluded", minSample)},
}}

var lanePart = &Part{"lane", []Key{
	{"topics", "", "`[sms.<name>]`", "Kafka topics. Each belongs to one lane"},
	{"ttl", "", byLane(func(l Lane) any { return l.TTL }), "1s to 30d: the deadline of a message " +
		"without `expires_at`, counted from the timestamp of its record, or from its later `send_at`"},
	{"max_waiting", "", code(defaultMaxWaiting), "messages that may wait before the lane's " +
		"topics are paused"},
	{"ambiguous", "", byLane(func(l Lane) any { return l.Ambiguous }), "what happens when it " +
		"stays unknown whether a message was taken. `never`: it stays `unknown`. `resend_once`: " +
		"it is sent once more and flagged as a possible duplicate"},
	{"clarify", "", "`[same_key, lookup, receipt]`", "how the dispatcher finds out whether a " +
		"provider took a message that it did not answer: by the first of these that the provider " +
		"offers. `[]`: it does not try. See [ambiguous.md](ambiguous.md)"},
	{"clarify_for", "", byLane(func(l Lane) any { return l.ClarifyFor }), "1s to 7d: for how long"},
	{"ignore_opt_out", "", code(false), "`true` sends also to recipients who have opted out of " +
		"the tenant's messages: [inbound.md](inbound.md)"},
}}

// ratesPart has one fixed key. All other keys are currencies.
var ratesPart = &Part{"rates", []Key{
	{"base", "", required, "the currency that prices are converted to"},
	{"any other currency", "", none, "what one unit of it is worth in `base`: a decimal above 0, " +
		"at most 1000000, with at most nine digits after the point. Every currency of a price " +
		"needs one"},
}}

var blockedPart = &Part{"blocked", []Key{
	{"prefixes", "prefix", none, "beginnings of numbers"},
	{"countries", "country", none, "two-letter codes of [countries](#countries)"},
	{"premium", "", code(false), "`true` blocks premium-rate numbers, whose owner earns from " +
		"each call or text, as far as the numbering plans of this release know them"},
}}

var allowedPart = &Part{"allowed", []Key{
	{"countries", "country", "all", "two-letter codes of [countries](#countries)"},
	{"tenants", "", none, "mapping from tenant to the countries that it may send to in place of " +
		"these, `{shop: [GB, IE]}`"},
}}

var pausedPart = &Part{"paused", []Key{
	{"all", "", code(false), "`true`: nothing is sent"},
	{"lanes", "lane", none, "names of lanes"},
	{"routes", "route", none, "names of routes"},
	{"tenants", "tenant", none, "names of tenants"},
	{"prefixes", "prefix", none, "beginnings of numbers, `\"+44\"`"},
}}

var guardPart = &Part{"guard", []Key{
	{"per", "", required, "`prefix` or `calling_code` of the recipients' numbers, or `tenant`"},
	{"digits", "", code(defaultGuardDigits), fmt.Sprintf("1 to %d, with `prefix`: how many digits it "+
		"has, with the calling code", MaxGuardDigits)},
	{"times", "", required, "1 to 1000: it trips above this many times the usual number of the hour"},
	{"at_least", "", required, "with fewer messages in the hour it never trips"},
	{"days", "", code(defaultGuardDays), fmt.Sprintf("1 to %d: the usual number is the mean "+
		"of the same hour over this many days before today; days without figures are left "+
		"out", MaxGuardDays)},
	{"action", "", code(string(GuardPauses)), "`pause`: the tenant, calling code or prefix is " +
		"[paused](#paused). `warn`: it is only reported"},
}}

var inboundPart = &Part{"inbound", []Key{
	{"keywords", "", "", "keywords of all numbers and channels without keywords"},
	{"numbers", "", none, "mapping from our number (with its plus, in quotes) or short code to " +
		"its tenant and keywords"},
	{"channels", "", none, "mapping from channel to the tenant and keywords of messages that come " +
		"over it to numbers not listed under `numbers`"},
}}

var sourcePart = &Part{"source", []Key{
	{"tenant", "", "the messages without a tenant", "whose messages these are"},
	{"keywords", "", "those of `inbound`", "keywords of this number or channel"},
	{"channels", "channel", "all", "of a number: the channels over which keywords change the " +
		"opt-out list. A message to the number over another one is published, and changes nothing"},
}}

var keywordsPart = &Part{"keywords", []Key{
	{"stop", "", words(standardKeywords.Stop), "words that put the sender on the tenant's " +
		"opt-out list"},
	{"start", "", words(standardKeywords.Start), "words that take the sender off it"},
}}
