package config_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

var update = flag.Bool("update", false, "rewrite testdata/problems.txt")

// head is a valid document up to its routes, two lines long.
const head = "channels: {a: {provider: sandbox}, b: {provider: sandbox}}\nroutes:\n"

// channel returns a document whose channel a has the given keys on line 3.
func channel(keys string) string {
	return "channels:\n  a:\n    {" + keys + "}\nroutes: [{name: r, weights: {a: 1}}]"
}

// route returns a document whose only route has the given keys on line 3.
func route(keys string) string { return head + "- {name: r, " + keys + "}" }

// capped returns a document whose only route has a price cap on line 5.
func capped(limit string) string {
	return "channels:\n  a: {provider: sandbox, price: {currency: EUR, default: \"0.03\"}}\n" +
		"  b: {provider: sandbox, price: {currency: USD, default: \"0.04\"}}\nroutes:\n" +
		"- {name: r, weights: {a: 1, b: 1}, price_cap: " + limit + "}"
}

// scoring returns a document whose only route has the given scoring on line 3.
func scoring(s string) string { return route("mode: best_worker, channels: [a, b], scoring: " + s) }

// pricedRoute returns a document whose only route scores by price on line 7. Its channels have the
// given prices; an empty one means no price.
func pricedRoute(a, b string) string {
	price := func(p string) string {
		if p == "" {
			return "{provider: sandbox}"
		}
		return "{provider: sandbox, price: " + p + "}"
	}
	return "channels:\n  a: " + price(a) + "\n  b: " + price(b) +
		"\nroutes:\n- {name: r, mode: best_worker, channels: [a, b],\n   scoring:\n" +
		"    {expression: \"-price\"}}"
}

// lanes returns a document with the given lanes on line 3.
func lanes(lanes string) string {
	return "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]\nlanes: {" +
		lanes + "}"
}

var badDocuments = []struct{ name, doc string }{
	{"hours in words", route("weights: {a: 1}, match: {hours: [mornings, \"mon 8-18\"]}")},
	{"hours of no day", route("weights: {a: 1}, match: {hours: \"mon-fry 08:00-18:00\"}")},
	{"hours without length", route("weights: {a: 1}, match: {hours: \"08:00-08:00\"}")},
	{"hours from midnight on", route("weights: {a: 1}, match: {hours: \"24:00-08:00\"}")},
	{"no hours", route("weights: {a: 1}, match: {hours: []}")},
	{"a sender that is none", route("weights: {a: 1}, match: {sender: \"a very long sender\"}")},
	{"quiet hours without hours", route("weights: {a: 1}, quiet: {then: hold}")},
	{"quiet for ever", route("weights: {a: 1}, quiet: {hours: [\"08:00-20:00\", \"20:00-08:00\"]}")},
	{"quiet where", route("weights: {a: 1}, quiet: {hours: \"22:00-08:00\", zone: recipients}")},
	{"sticky in turn", route("mode: round_robin, channels: [a, b], sticky: true")},
	{"quiet and then", route("weights: {a: 1}, quiet: {hours: \"22:00-08:00\", then: drop}")},
	{"groups of countries", head + "- {name: r, match: {countries: [dach, dash, gb]}, weights: {a: 1}}\n" +
		"country_groups: {de: [AT], empty: [], odd: [xx], dach: [DE, AT]}"},
	{"nothing", ""},
	{"only a comment", "# nothing\n"},
	{"null", "~"},
	{"a list", "[]"},
	{"no YAML", "channels: {a: [}\n"},
	{"a tab", "channels:\n\ta: 1"},
	{"two documents", head + "- {name: r, weights: {a: 1}}\n---\nx: 1\n"},
	{"empty mapping", "{}"},
	{"misspelt top key", "chanels: {}\nroutes: []"},
	{
		"misspelt key above its value",
		"channels:\n  a:\n    provider: sandbox\n    lables:\n      x: 1\n" +
			"routes: [{name: r, weights: {a: 1}}]",
	},
	{"no channel", "channels: {}\nroutes: [{name: r, weights: {a: 1}}]"},
	{"no route", "channels: {a: {provider: sandbox}}\nroutes: []"},
	{"time zone", "timezone: Europe/Londn\n" + head + "- {name: r, weights: {a: 1}}"},
	{"local time zone", "timezone: Local\n" + head + "- {name: r, weights: {a: 1}}"},
	{
		"channel twice",
		"channels:\n  a: {provider: sandbox}\n  a: {provider: sandbox}\n" +
			"routes: [{name: r, weights: {a: 1}}]",
	},
	{"channel name", "channels: {a b: {provider: sandbox}}\nroutes: [{name: r, weights: {a b: 1}}]"},
	{"channel without provider", channel("capacity: 5")},
	{"unknown provider", channel("provider: smp")},
	{"unknown channel key", channel("provider: sandbox, capasity: 5")},
	{"price without currency", channel(`provider: sandbox, price: {default: "0.03"}`)},
	{
		"price of a country that is none",
		channel(`provider: sandbox, price: {currency: EUR, default: "0.03", countries: {France: "0.05"}}`),
	},
	{
		"price of a country twice",
		channel(`provider: sandbox, price: {currency: EUR, default: "0.03", countries: {fr: "0.05", FR: "0.06"}}`),
	},
	{
		"price of a network that is none",
		channel(`provider: sandbox, price: {currency: EUR, default: "0.03", networks: {"23": "0.05"}}`),
	},
	{"contract of nothing", channel("provider: sandbox, contract: {begins: 15}")},
	{"contract beyond its cap", channel("provider: sandbox, contract: {commitment: 9, cap: 8}")},
	{"contract from a day that a month lacks", channel(`provider: sandbox,
       contract: {cap: 8, begins: 31}`)},
	{"contract in money without prices", channel(`provider: sandbox,
       contract: {unit: money, cap: "8"}`)},
	{"contract for half a message", channel("provider: sandbox, contract: {cap: 0.5}")},
	{"prices of no list", channel("provider: sandbox, price: []")},
	{
		"first price with a date",
		channel(`provider: sandbox, price: {from: 2026-12-01, currency: EUR, default: "0.03"}`),
	},
	{
		"second price without a date",
		channel(`provider: sandbox, price: [{currency: EUR, default: "0.03"}, {default: "0.04"}]`),
	},
	{
		"prices out of order",
		channel(`provider: sandbox, price: [{currency: EUR, default: "0.03"}, {from: 2026-12-01, default: "0.04"}, {from: 2026-11-01, default: "0.05"}]`),
	},
	{
		"price from a word",
		channel(`provider: sandbox, price: [{currency: EUR, default: "0.03"}, {from: december, default: "0.04"}]`),
	},
	{
		"price in a second currency",
		channel(`provider: sandbox, price: [{currency: EUR, default: "0.03"}, {from: 2026-12-01, currency: USD, default: "0.04"}]`),
	},
	{
		"later price without default",
		channel(`provider: sandbox, price: [{currency: EUR, default: "0.03"}, {from: 2026-12-01, prefixes: {"+44": "0.04"}}]`),
	},
	{
		"money below a later price",
		channel(`provider: sandbox, price: [{currency: GBP, default: "0.03"}, {from: 2026-12-01, default: "0.03", countries: {fr: "0.05"}}], limits: [{window: 1d, max: "0.49", unit: money}]`),
	},
	{"senders of an unknown key", channel("provider: sandbox, senders: {defalt: ACME}")},
	{"default sender too long", channel("provider: sandbox, senders: {default: ACME International}")},
	{"sender of another alphabet", channel("provider: sandbox, senders: {rules: [{ids: [АСМЕ]}]}")},
	{"sender rule of nothing", channel("provider: sandbox, senders: {rules: [{country: us}]}")},
	{
		"sender rule of an unknown kind",
		channel("provider: sandbox, senders: {rules: [{allow: [longcode]}]}"),
	},
	{"sender rule of no kind", channel("provider: sandbox, senders: {rules: [{allow: []}]}")},
	{
		"sender rule below one for all",
		channel("provider: sandbox, senders: {rules: [{allow: [alphanumeric]}, {country: us, allow: " +
			"[long_code]}]}"),
	},
	{
		"sender rule of no country",
		channel("provider: sandbox, senders: {rules: [{country: usa, allow: [long_code]}]}"),
	},
	{
		"sender in its place that is none",
		channel(`provider: sandbox, senders: {rules: [{country: us, from: "12"}]}`),
	},
	{"price cap as a number", route(`weights: {a: 1}, price_cap: "0.05"`)},
	{"price cap of no currency", route("weights: {a: 1}, price_cap: {}")},
	{"price cap with an amount", route(`weights: {a: 1}, price_cap: {amount: "0.05", currency: EUR}`)},
	{"price cap over a channel without a price", route(`weights: {a: 1}, price_cap: {EUR: "0.05"}`)},
	{"price cap in another currency", capped(`{EUR: "0.05"}`)},
	{"price cap in a currency too many", capped(`{EUR: "0.05", USD: "0.05", GBP: "0.05"}`)},
	{"price cap below every price", capped(`{EUR: "0.02", USD: "0.03"}`)},
	{"blocked of an unknown key", "blocked: {premum: true}\n" + route("weights: {a: 1}")},
	{"blocked prefix without a plus", "blocked: {prefixes: [4487]}\n" + route("weights: {a: 1}")},
	{"blocked country that nobody has", "blocked: {countries: [zz]}\n" + route("weights: {a: 1}")},
	{"blocked country by its usual name", "blocked: {countries: [uk]}\n" + route("weights: {a: 1}")},
	{"blocked country that is none", "blocked: {country: north}\n" + route("weights: {a: 1}")},
	{"blocked premium as a word", "blocked: {premium: some}\n" + route("weights: {a: 1}")},
	{"capacity", channel("provider: sandbox, capacity: 0")},
	{"capacity of a mapping", channel("provider: sandbox, capacity: {}")},
	{"state", channel("provider: sandbox, state: drain")},
	{"test", channel("provider: sandbox, test: maybe")},
	{"secret", channel("provider: smpp, settings: {address: x, password: hunter2}")},
	{"nested secret", channel("provider: smpp, settings: {list: [{api_key: hunter2}]}")},
	{"window", channel("provider: sandbox, limits: [{window: 2s, max: 1}]")},
	{"unit", channel("provider: sandbox, limits: [{window: 1s, max: 1, unit: parts}]")},
	{"limit without max", channel("provider: sandbox, limits: [{window: 1s}]")},
	{"limit below zero", channel("provider: sandbox, limits: [{window: 1s, max: -1}]")},
	{
		"limit twice",
		channel("provider: sandbox, limits: [{window: 1s, max: 10}, {window: 1s, max: 20}]"),
	},
	{
		"limit twice in a scope",
		channel(`provider: sandbox, limits: [{window: 1d, max: 10, tenant: shop}, {window: 1d, max: 20, tenant: other}, {window: 24h, max: 20, tenant: shop}]`),
	},
	{
		"limit of tenant and prefix",
		channel(`provider: sandbox, limits: [{window: 1s, max: 10, tenant: shop, prefix: "+44"}]`),
	},
	{
		"limit of a prefix without a plus",
		channel(`provider: sandbox, limits: [{window: 1s, max: 10, prefix: 44}]`),
	},
	{
		"limit of a prefix with a word",
		channel(`provider: sandbox, limits: [{window: 1s, max: 10, prefix: "+44x"}]`),
	},
	{"limit of no tenant", channel(`provider: sandbox, limits: [{window: 1s, max: 10, tenant: ""}]`)},
	{"unknown limit key", channel("provider: sandbox, limits: [{window: 1s, max: 10, slidng: true}]")},
	{"sliding as a number", channel("provider: sandbox, limits: [{window: 1s, max: 10, sliding: 1}]")},
	{"burst without sliding", channel("provider: sandbox, limits: [{window: 1s, max: 10, burst: 2}]")},
	{
		"burst of zero",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, sliding: true, burst: 0}]"),
	},
	{
		"burst above max",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, sliding: true, burst: 11}]"),
	},
	{
		"burst below a message",
		channel("provider: sandbox, limits: [{window: 1s, max: 50, unit: segments, sliding: true, " +
			"burst: 9}]"),
	},
	{
		"reserve of an unknown lane",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {opt: 20%}}]"),
	},
	{
		"reserve without percent",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {otp: 20}}]"),
	},
	{
		"reserve of nothing",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {otp: 0%}}]"),
	},
	{
		"reserve of too much",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {otp: 101%}}]"),
	},
	{
		"reserves of too much",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {otp: 60%, bulk: 41%}}]"),
	},
	{
		"reserve as a number",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: 20%}]"),
	},
	{
		"reserve of a sliding limit",
		channel("provider: sandbox, limits: [{window: 1s, max: 100, sliding: true, reserve: " +
			"{otp: 20%}}]"),
	},
	{
		"reserve that a long message does not get past",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, unit: segments, reserve: " +
			"{otp: 50%}}]"),
	},
	{
		"reserve of all segments",
		channel("provider: sandbox, limits: [{window: 1m, max: 60, unit: segments, tenant: shop, " +
			"reserve: {otp: 100%}}]"),
	},
	{
		"reserve of all messages",
		channel("provider: sandbox, limits: [{window: 1s, max: 10, reserve: {otp: 60%, bulk: 40%}}]"),
	},
	{
		"reserve that an expensive message does not get past",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1d, max: "0.50", unit: money, reserve: {otp: 50%}}]`),
	},
	{
		"reserve of a limit over all channels",
		"limits: [{window: 1s, max: 12, unit: segments, tenant: shop, reserve: {otp: 25%}}]\n" +
			route("weights: {a: 1}"),
	},
	{
		"money per second",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1s, max: 10, unit: money}]`),
	},
	{
		"money that slides",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1h, max: 10, unit: money, sliding: true}]`),
	},
	{"guard of nothing", "guards: [{}]\n" + route("weights: {a: 1}")},
	{
		"guards that are the same",
		"guards: [{per: tenant, times: 5, at_least: 2}, {per: tenant, times: 9, at_least: 2}]\n" +
			route("weights: {a: 1}"),
	},
	{
		"guard of unknown words",
		"guards: [{per: number, times: 0, at_least: 0, days: 32, action: block}, " +
			"{per: tenant, times: 2, at_least: 2, digits: 4}, " +
			"{per: prefix, times: 2, at_least: 2, digits: 7}]\n" +
			route("weights: {a: 1}"),
	},
	{
		"budget with a max",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: prepaid, max: 10, unit: money}]`),
	},
	{
		"budget with a reserve",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: prepaid, unit: money, reserve: {otp: 20%}}]`),
	},
	{
		"budget in messages",
		channel(`provider: sandbox, limits: [{window: prepaid}]`),
	},
	{
		"budget of a prefix",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: prepaid, unit: money, prefix: "+44"}]`),
	},
	{
		"budget that slides",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: prepaid, unit: money, sliding: true}]`),
	},
	{
		"money without a price",
		channel("provider: sandbox, limits: [{window: 1d, max: 10, unit: money}]"),
	},
	{
		"money in another currency",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1d, max: 10, unit: money, currency: EUR}]`),
	},
	{
		"money too fine",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1d, max: "10.0000001", unit: money}]`),
	},
	{
		"money beyond a billion",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1d, max: "1000000000.01", unit: money}]`),
	},
	{
		"money below zero",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03"}, limits: [{window: 1d, max: -1, unit: money}]`),
	},
	{
		"money below a message",
		channel(`provider: sandbox, price: {currency: GBP, default: "0.03", prefixes: {"+44": "0.05"}}, limits: [{window: 1d, max: "0.49", unit: money}]`),
	},
	{
		"currency of messages",
		channel("provider: sandbox, limits: [{window: 1d, max: 10, currency: GBP}]"),
	},
	{
		"limit over all channels of no scope",
		"limits: [{window: 1d, max: 10}]\n" + route("weights: {a: 1}"),
	},
	{
		"limit over all channels in no currency",
		"limits: [{window: 1d, max: 10, unit: money, tenant: shop}]\n" + route("weights: {a: 1}"),
	},
	{
		"limit over all channels in two currencies",
		"limits: [{window: 1d, max: 10, unit: money, currency: GBP, tenant: shop}]\n" +
			channel(`provider: sandbox, price: {currency: EUR, default: 0.05}`),
	},
	{
		"limit over all channels below a message",
		"limits: [{window: 1d, max: 9, unit: segments, tenant: shop}]\n" + route("weights: {a: 1}"),
	},
	{
		"limit over all channels below the price of a message",
		"limits: [{window: 1d, max: 0.4, unit: money, currency: EUR, prefix: '+44'}]\n" +
			channel(`provider: sandbox, price: {currency: EUR, default: 0.05}`),
	},
	{
		"limit over all channels twice",
		"limits: [{window: 1d, max: 90, tenant: shop}, {window: 1d, max: 80, tenant: shop}]\n" +
			route("weights: {a: 1}"),
	},
	{
		"limit of a tenant below a message",
		channel("provider: sandbox, limits: [{window: 1s, max: 5, unit: segments, tenant: shop}]"),
	},
	{
		"limit of a prefix below a message",
		channel("provider: sandbox, limits: [{window: 1s, max: 5, unit: segments, prefix: '+447'}]"),
	},
	{"policy", channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: evn")},
	{"policy without limits", channel("provider: sandbox, admission: even")},
	{
		"policy with limits of tenants alone",
		channel("provider: sandbox, limits: [{window: 1s, max: 50, tenant: shop}], admission: counter"),
	},
	{
		"policy of no name",
		channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: {curve_factor: 2}"),
	},
	{
		"policy as a list",
		channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: [even]"),
	},
	{
		"curve factor of another policy",
		channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: {policy: even, " +
			"curve_factor: 2}"),
	},
	{
		"curve factor of zero",
		channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: {policy: curve, " +
			"curve_factor: 0}"),
	},
	{
		"curve factor as a word",
		channel("provider: sandbox, limits: [{window: 1s, max: 50}], admission: {policy: curve, " +
			"curve_factor: steep}"),
	},
	{"limits as a mapping", channel("provider: sandbox, limits: {window: 1s, max: 10}")},
	{
		"limit below a message",
		channel("provider: sandbox, limits: [{window: 1s, max: 5, unit: segments}]"),
	},
	{
		"limit just below a message",
		channel("provider: sandbox, limits: [{window: 1m, max: 9, unit: segments}]"),
	},
	{"active until something", channel("provider: sandbox, active: {max: 5, until: reseit}")},
	{
		"active until receipt without hold",
		channel("provider: sandbox, active: {max: 5, until: receipt, hold: 0s}"),
	},
	{"hold too short", channel("provider: sandbox, active: {max: 5, hold: 10ms}")},
	{"hold too long", channel("provider: sandbox, active: {max: 5, until: receipt, hold: 2d}")},
	{"receipts as another word", channel("provider: sandbox, receipts: noen")},
	{"receipts as a list", channel("provider: sandbox, receipts: [within]")},
	{"receipts without within", channel("provider: sandbox, receipts: {}")},
	{"receipts within no time", channel("provider: sandbox, receipts: {within: 0s}")},
	{"receipts within too long", channel("provider: sandbox, receipts: {within: 31d}")},
	{
		"receipts none though slots wait for them",
		channel("provider: sandbox, active: {max: 5, until: receipt}, receipts: none"),
	},
	{"active without max", channel("provider: sandbox, active: {until: submit}")},
	{"label of a bool", channel("provider: sandbox, labels: {fast: true}")},
	{"label NaN", channel("provider: sandbox, labels: {fast: .nan}")},
	{"price without currency", channel(`provider: sandbox, price: {default: "0.03"}`)},
	{"price negative", channel(`provider: sandbox, price: {currency: EUR, default: "-0.03"}`)},
	{"price too fine", channel(`provider: sandbox, price: {currency: EUR, default: "0.0000031"}`)},
	{"price as a word", channel(`provider: sandbox, price: {currency: euro, default: cheap}`)},
	{
		"price prefix",
		channel(`provider: sandbox, price: {currency: EUR, default: 1, prefixes: {"44": 1}}`),
	},
	{"no weights", route("mode: weighted")},
	{"negative weight", route("weights: {a: -5, b: 1}")},
	{"weight as a word", route("weights: {a: much}")},
	{"weight with exponent", route("weights: {a: 1e3}")},
	{"weight too fine", route("weights: {a: 0.0000000001}")},
	{"weights too large", route("weights: {a: 1099511627776, b: 1}")},
	{"weight missing", route("weights: {a: }")},
	{"all weights 0", route("weights: {a: 0, b: 0.0}")},
	{"no weight at all", route("weights: {}")},
	{"unknown channel", route("weights: {a: 1, c: 1}")},
	{
		"misspelt channel",
		"channels: {alpha: {provider: sandbox}}\nroutes:\n- {name: r, weights: {alpah: 1}}",
	},
	{"channels for weighted", route("channels: [a, c]")},
	{"weights and channels", route("weights: {a: 1}, channels: [a]")},
	{"unknown mode", route("mode: weihted, weights: {a: 1}")},
	{"unknown fallback", route("fallback: random, weights: {a: 1}")},
	{"channels for redraw", route("mode: round_robin, fallback: redraw, channels: [a, b]")},
	{"no members", route("mode: round_robin")},
	{"no channel in a list", route("mode: round_robin, channels: []")},
	{"channel listed twice", route("mode: longest_idle, channels: [a, b, a]")},
	{"unknown channel in a list", route("mode: longest_idle, channels: [a, [b], c]")},
	{"channels as a mapping", route("mode: longest_idle, channels: {a: 1}")},
	{"weights of 0 in another mode", route("mode: round_robin, weights: {a: 0}")},
	{
		"limit below a message in another mode",
		"channels: {a: {provider: sandbox, limits: [{window: 1s, max: 5, unit: segments}]}}\nroutes:\n" +
			"- {name: r, mode: round_robin, channels: [a]}",
	},
	{
		"limit below a message at weight 0",
		"channels: {a: {provider: sandbox}, b: {provider: sandbox, limits: [{window: 1s, max: 5, unit: " +
			"segments}]}}\nroutes:\n- {name: r, mode: round_robin, weights: {a: 1, b: 0}}",
	},
	{"scoring of nothing", route("scoring: default, weights: {a: 1}")},
	{
		"scoring of another mode",
		route("mode: round_robin, channels: [a], scoring: {function: 'https://x.example'}"),
	},
	{"price of a channel without one", pricedRoute("", `{currency: EUR, default: "0.03"}`)},
	{"price of channels without any", scoring("{expression: 1 - price}")},
	{
		"prices in two currencies",
		pricedRoute(`{currency: GBP, default: "0.03"}`, `{currency: EUR, default: "0.03"}`),
	},
	{"prices in two currencies, in a longer expression", strings.Replace(
		pricedRoute(`{currency: GBP, default: "0.03"}`, `{currency: EUR, default: "0.03"}`), "-price",
		"lane == 'otp' ? 1 - load_ratio : -price", 1)},
	{"rates as a list", "rates: [EUR]\n" + head + "- {name: r, weights: {a: 1}}"},
	{"rates without a base", "rates: {GBP: \"1.17\"}\n" + head + "- {name: r, weights: {a: 1}}"},
	{
		"rate that is none",
		"rates: {base: EUR, GBP: many, USD: 0, CHF: -1, PLN: \"0.2400000001\", JPY: 2000000}\n" + head +
			"- {name: r, weights: {a: 1}}",
	},
	{"rate of the base", "rates: {base: EUR, EUR: 1}\n" + head + "- {name: r, weights: {a: 1}}"},
	{"rate of no currency", "rates: {base: euro, pound: 1}\n" + head + "- {name: r, weights: {a: 1}}"},
	{
		"no rate for a price",
		"rates: {base: EUR, USD: \"0.9\"}\n" +
			pricedRoute(`{currency: GBP, default: "0.03"}`, `{currency: EUR, default: "0.03"}`),
	},
	{
		"rates, but no price",
		"rates: {base: EUR, GBP: \"1.17\"}\n" + pricedRoute(`{currency: GBP, default: "0.03"}`, ""),
	},
	{"tolerance", route("weights: {a: 1}, tolerance: 2%")},
	{"tolerance of more than all", route("weights: {a: 1}, tolerance: 101")},
	{"scoring word", scoring("fast")},
	{"scoring as a list", scoring("[default]")},
	{"scoring of neither", scoring("{}")},
	{"scoring of only a direction", scoring("{descending: false}")},
	{"scoring of both", scoring("{expression: load_ratio, function: 'https://x.example'}")},
	{"misspelt scoring key", scoring("{expresion: price}")},
	{"key of a function beside an expression", scoring("{expression: load_ratio, deadline: 1s}")},
	{"empty expression", scoring("{expression: ''}")},
	{"expression of a mapping", scoring("{expression: {a: 1}}")},
	{"descending", scoring("{expression: load_ratio, descending: up}")},
	{"function without a scheme", scoring("{function: scores.example.com}")},
	{"function with a port too high", scoring("{function: 'https://x.example:70000'}")},
	{"function of a file", scoring("{function: 'file:///etc/passwd'}")},
	{"function without a host", scoring("{function: 'http://:80/x'}")},
	{"function with a user", scoring("{function: 'https://me:hunter2@x.example'}")},
	{"function with a secret", scoring("{function: 'https://x.example/a?v=1&code=hunter2'}")},
	{"function with a bad query", scoring("{function: 'https://x.example/a?%zz=hunter2'}")},
	{"function that is not a URL", scoring("{function: 'https://x.example/%zz/hunter2'}")},
	{"function with a fragment", scoring("{function: 'https://x.example/#hunter2'}")},
	{"function of nothing", scoring("{function: ''}")},
	{"function deadline too short", scoring("{function: 'https://x.example', deadline: 9ms}")},
	{"function deadline too long", scoring("{function: 'https://x.example', deadline: 6s}")},
	{"function cache", scoring("{function: 'https://x.example', cache: 25h}")},
	{"function batch", scoring("{function: 'https://x.example', batch: 20}")},
	{"function batch size", scoring("{function: 'https://x.example', batch: true, batch_size: 0}")},
	{"function batch size without batch", scoring("{function: 'https://x.example', batch_size: 5}")},
	{
		"function parameter of a bool",
		scoring("{function: 'https://x.example', parameters: {vip: true}}"),
	},
	{
		"function parameter of a secret",
		scoring("{function: 'https://x.example', parameters: {api_key: hunter2}}"),
	},
	{"function with a token", scoring("{function: 'https://x.example', token: hunter2}")},
	{"no receipt without a time", route("weights: {a: 1, b: 1}, no_receipt: {}")},
	{"no receipt at once", route("weights: {a: 1, b: 1}, no_receipt: {after: 1s}")},
	{"no receipt for days", route("weights: {a: 1, b: 1}, no_receipt: {after: 2d}")},
	{"no receipt and one channel", route("weights: {a: 1}, no_receipt: {after: 10m}")},
	{
		"no receipt of channels without any", "channels: {a: {provider: sandbox, receipts: none}, " +
			"b: {provider: sandbox, receipts: none}}\n" +
			"routes: [{name: r, weights: {a: 1, b: 1}, no_receipt: {after: 10m}}]",
	},
	{
		"no receipt after nobody awaits it", "channels: {a: {provider: sandbox, receipts: none}, " +
			"b: {provider: sandbox, receipts: {within: 10m}}}\n" +
			"routes: [{name: r, weights: {a: 1, b: 1}, no_receipt: {after: 10m}}]",
	},
	{"health without errors", route("weights: {a: 1, b: 1}, health: {window: 1m}")},
	{"health as a number", route("weights: {a: 1, b: 1}, health: 20")},
	{
		"health bounds",
		route("weights: {a: 1, b: 1}, health: {errors: 0, window: 0s, step: 0, floor: 100, interval: " +
			"2d, quiet: 2d}"),
	},
	{
		"health by receipts of nothing",
		route("weights: {a: 1, b: 1}, health: {errors: 9, receipts: {}}"),
	},
	{
		"health receipts out of bounds", route("weights: {a: 1, b: 1}, health: {errors: 9, " +
			"receipts: {delivered: 100, within: 2h, window: 2h, least: 19, most: 3}}"),
	},
	{
		"health quiet below the window of receipts",
		route("weights: {a: 1, b: 1}, health: {errors: 20, quiet: 5m, receipts: {delivered: 80}}"),
	},
	{
		"health quiet below its window",
		route("weights: {a: 1, b: 1}, health: {errors: 20, window: 10m, quiet: 5m}"),
	},
	{
		"health of another mode", route("mode: best_worker, weights: {a: 1, b: 1}, health: {errors: 20}"),
	},
	{"health of one channel", route("weights: {a: 1}, health: {errors: 20}")},
	{"misspelt health key", route("weights: {a: 1, b: 1}, health: {errors: 20, stp: 5}")},
	{"wait of another mode", route("mode: longest_idle, wait: 5s, channels: [a]")},
	{"wait", route("wait: soon, weights: {a: 1}")},
	{"wait of days", route("wait: 2d, weights: {a: 1}")},
	{"wait below zero", route("wait: -1s, weights: {a: 1}")},
	{"max_segments", route("max_segments: 256, weights: {a: 1}")},
	{"throttled", route("throttled: later, weights: {a: 1}")},
	{"route without name", head + "- {weights: {a: 1}}"},
	{"route twice", head + "- {name: r, weights: {a: 1}}\n- {name: r, weights: {a: 1}}"},
	{"prefix", route(`match: {prefixes: ["0044"]}, weights: {a: 1}`)},
	{"country", route("match: {countries: [England]}, weights: {a: 1}")},
	{"country that nobody has", route("match: {country: zz}, weights: {a: 1}")},
	{"match on an unknown lane", route("match: {lanes: [opt]}, weights: {a: 1}")},
	{"match on an empty list", route("match: {tenants: []}, weights: {a: 1}")},
	{"match twice", route("match: {tenant: x, tenants: [y]}, weights: {a: 1}")},
	{"unknown match key", route("match: {numbers: [x]}, weights: {a: 1}")},
	{
		"merge key",
		"channels:\n  a: &a {provider: sandbox}\n  b:\n    <<: *a\nroutes: [{name: r, weights: {a: 1}}]",
	},
	{"ttl", lanes("otp: {ttl: 0s}")},
	{"max_waiting", lanes("otp: {max_waiting: -1}")},
	{"ambiguous", lanes("otp: {ambiguous: always}")},
	{"clarify", lanes("otp: {clarify: [lookup, phone]}")},
	{"clarify twice", lanes("otp: {clarify: [lookup, lookup]}")},
	{"clarify_for", lanes("otp: {clarify_for: 8d}")},
	{"topic name", lanes("otp: {topics: [sms otp]}")},
	{"topic in two lanes", lanes("otp: {topics: [sms.x]}, bulk: {topics: [sms.x]}")},
	{"lane name", lanes("o/p: {}")},
	{
		"several at once",
		"timezone: Nowhere\nchannels:\n  a: {provider: smp, capacity: x}\nroutes:\n" +
			"- {name: r, weghts: {a: 1}}\n",
	},
	{
		"a key with a line break",
		"\"a\\nb\": 1\nchannels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]",
	},
	{
		"too many problems",
		"channels: {a: {provider: sandbox}}\nroutes:\n" +
			strings.Repeat("- {name: r, weights: {}}\n", 25),
	},
}

// Operators read these sentences, so they are in a file that is easy to review. To update it: go
// test ./config -run Golden -update.
func TestProblemSentencesGolden(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, c := range badDocuments {
		_, err := config.ParseRouting("routing.yaml", []byte(c.doc))
		if err == nil {
			t.Errorf("%s: the document was accepted", c.name)
			continue
		}
		fmt.Fprintf(&got, "# %s\n%v\n\n", c.name, err)
	}
	const file = "testdata/problems.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(got.String(), "hunter2") {
		t.Error("a sentence shows a secret")
	}
}

func TestProblemsCanBeHadOneByOne(t *testing.T) {
	t.Parallel()
	_, err := config.ParseRouting("routing.yaml", []byte(route("weights: {a: -5}")))
	var p *config.Problem
	if !errors.As(err, &p) || p.Line != 3 || p.Key != "routes[0].weights.a" ||
		p.File != "routing.yaml" {
		t.Errorf("problem %+v, want line 3, key routes[0].weights.a", p)
	}
}

func TestDocumentBeyondAMegabyteIsRefused(t *testing.T) {
	t.Parallel()
	_, err := config.ParseRouting("routing.yaml", []byte(strings.Repeat("#", 1<<20+1)))
	if err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("error %v", err)
	}
}
