package pages

import (
	"strings"
	"testing"
)

const limitsDocument = `timezone: Europe/London
channels:
  a: {provider: sandbox, limits: [{window: 1d, max: 7001, tenant: "*"}]}
  b:
    provider: sandbox
    price: {currency: GBP, default: "0.031"}
    limits:
      - {window: 1m, max: 7002, prefix: "+4477"}
      - {window: prepaid, unit: money, currency: GBP}
  c: {provider: sandbox}
limits:
  - {window: 1h, max: 7003, tenant: shop}
routes:
  - {name: default, match: {}, weights: {a: 1, b: 1, c: 1}}
lanes:
  otp: {topics: [sms.otp], ttl: 10m}
`

func TestPagesShowLimitsOfEachScope(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.apply(t, limitsDocument)
	viewer := c.client(t, "viewer")
	onA := []string{"each tenant", "7\u2009001"}
	onB := []string{"prefix &#43;4477", "7\u2009002", "prepaid", "money GBP"}
	onAll := []string{"tenant shop", "all channels", "7\u2009003"}
	for path, want := range map[string][]string{
		"/":           append(append(append([]string{}, onA...), onB...), onAll...),
		"/channels/a": onA,
		"/channels/b": onB,
		"/channels/c": {"The channel has no limit."},
	} {
		body := viewer.get(path).body
		for _, words := range want {
			if !strings.Contains(body, words) {
				t.Errorf("%s does not say %q", path, words)
			}
		}
	}
}
