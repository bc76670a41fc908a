// Package demo shows the main job on one machine with nothing to set up: it starts a
// private PostgreSQL, a Kafka in this process and three sandbox carriers, publishes messages
// through a real producer, lets the real dispatcher carry them, and counts on the other side.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/consume"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider/smpp/smpptest"
)

// Routing is the document of the demo: three sandbox carriers at 25, 15 and 60, without receipts,
// so that the demo measures sending alone.
const Routing = `timezone: Europe/London
channels:
  a: {provider: sandbox, capacity: 500, price: {currency: GBP, default: "0.031"}}
  b: {provider: sandbox, capacity: 300, price: {currency: GBP, default: "0.035"}}
  c: {provider: sandbox, capacity: 1000, price: {currency: GBP, default: "0.028"}}
routes:
  - {name: default, match: {}, mode: weighted, weights: {a: 25, b: 15, c: 60}, fallback: load_ratio}
lanes:
  otp: {topics: [sms.otp], ttl: 10m, ambiguous: resend_once}
  transactional: {topics: [sms.transactional], ttl: 24h}
  bulk: {topics: [sms.bulk], ttl: 72h}
`

// RoutingWithReceipts is what "run --embedded" starts with: the same carriers, which report what
// became of each message.
func RoutingWithReceipts() []byte {
	return []byte(strings.ReplaceAll(Routing, "{provider: sandbox,", "{provider: sandbox, receipts: {within: 1h},"))
}

// weights are the shares that Routing agrees to.
var weights = []struct {
	channel string
	share   float64
}{{"a", 0.25}, {"b", 0.15}, {"c", 0.60}}

// Topics are those that Routing reads and those that the dispatcher writes.
func Topics(s *config.Settings) []string {
	return []string{"sms.otp", "sms.transactional", "sms.bulk", s.StatusTopic, s.DeadTopic, s.InboundTopic}
}

// Config says what to show.
type Config struct {
	Settings config.Settings
	Messages int
	// Seed makes the messages; with the folder's draw key it fixes every choice.
	Seed uint64
	// Folder keeps the data of both servers.
	Folder string
	// Ports of the private servers; 0 takes free ones.
	KafkaPort, PostgresPort int
	Log                     zerolog.Logger
	Version                 string
	// Step names what goes on, Progress counts the messages that have been answered. Both may be nil.
	Step     func(what string)
	Progress func(done int)
}

// Result is what came of it. The JSON names are relied on by scripts.
type Result struct {
	Messages          int       `json:"messages"`
	Accepted          int64     `json:"accepted"`
	Rejected          int64     `json:"rejected"`
	Unknown           int64     `json:"unknown"`
	DuplicatesSent    int       `json:"duplicates_sent"` // by the carriers' own count
	Seconds           float64   `json:"seconds"`         // from the first publish to the last outcome
	MessagesPerSecond float64   `json:"messages_per_second"`
	ChiSquareP        float64   `json:"chi_square_p"` // of the draws; 1 when they were too few to test
	Verdict           string    `json:"verdict"`      // TrafficVerdict
	DrawsVerdict      string    `json:"draws_verdict"`
	TrafficVerdict    string    `json:"traffic_verdict"`
	Text              []string  `json:"text"` // both verdicts in sentences, as the daily report has them
	Seed              uint64    `json:"seed"`
	Channels          []Channel `json:"channels"`
}

// Channel is one channel's part of a Result.
type Channel struct {
	Channel          string  `json:"channel"`
	Configured       float64 `json:"configured"` // share between 0 and 1
	FirstChoice      int64   `json:"first_choice"`
	FirstChoiceShare float64 `json:"first_choice_share"`
	Deviation        float64 `json:"deviation"` // of the share, in points of 1
	Fallback         int64   `json:"fallback"`
	Sent             int64   `json:"sent"`
	Accepted         int64   `json:"accepted"`
	Carried          int64   `json:"carried"` // messages that the channel accepted
	CarriedShare     float64 `json:"carried_share"`
	Segments         int64   `json:"segments"`
	CostMicros       int64   `json:"cost_micros"`
	Currency         string  `json:"currency"`
}

// demo is one run under way.
type demo struct {
	cfg     Config
	private *app.Private
	app     *app.App
	submits tally
	doc     *config.Routing
	began   time.Time
	before  ledger.Totals // what the folder held from earlier runs
	moved   moves         // the same of what was carried on the day
}

// Run shows the main job once. When ctx ends it stops in order and returns ctx's error;
// what was accepted by then stays in the folder.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	d := &demo{cfg: cfg, submits: tally{seen: map[string]int{}}}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	d.step("publishing to Kafka and sending")
	if err := d.carry(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	totals, err := d.app.Ledger().Totals(ctx)
	if err != nil {
		return nil, err
	}
	carried, err := d.carried(ctx)
	if err != nil {
		return nil, err
	}
	return d.result(&totals, carried, took)
}

func (d *demo) step(what string) {
	if d.cfg.Step != nil {
		d.cfg.Step(what)
	}
}

func (d *demo) start(ctx context.Context) (err error) {
	d.step("starting a private PostgreSQL and Kafka")
	d.private, err = app.StartPrivate(ctx, app.PrivateConfig{
		Folder: d.cfg.Folder, KafkaPort: d.cfg.KafkaPort, PostgresPort: d.cfg.PostgresPort, Topics: Topics(&d.cfg.Settings),
	})
	if err != nil {
		return err
	}
	settings := d.cfg.Settings
	d.private.Fill(&settings)
	settings.Listen, settings.ReceiptsListen, settings.PublicURL = "127.0.0.1:0", "127.0.0.1:0", ""
	d.step("starting the dispatcher and three sandbox carriers")
	d.app, err = app.Start(ctx, app.Options{
		Settings: settings, Keys: d.private.Keys, Log: d.cfg.Log, Version: d.cfg.Version, OnSubmit: d.submits.add,
		Routing: func() (string, []byte, error) { return "the demo's routing", []byte(Routing), nil },
	})
	if err != nil {
		return err
	}
	if d.doc, err = config.ParseRouting("the demo's routing", []byte(Routing)); err != nil {
		return err
	}
	d.began = time.Now()
	if d.before, err = d.app.Ledger().Totals(ctx); err != nil {
		return err
	}
	d.moved, err = d.carried(ctx)
	return err
}

// stop ends what runs, the dispatcher before its servers.
func (d *demo) stop() error {
	var errs []error
	if d.app != nil {
		errs = append(errs, d.app.Stop())
	}
	if d.private != nil {
		errs = append(errs, d.private.Stop())
	}
	return errors.Join(errs...)
}

// carry publishes all messages and waits until each has its outcome.
func (d *demo) carry(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	published := make(chan error, 1)
	go func() { published <- d.publish(ctx) }()
	failed := make(chan error, 1)
	go func() { failed <- d.app.Wait(ctx) }()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-published:
			if err != nil {
				return err
			}
			published = nil
		case err := <-failed:
			if err == nil {
				err = ctx.Err()
			}
			return err
		case <-ticker.C:
			done, err := d.done(ctx)
			if err != nil {
				return err
			}
			if published == nil && done {
				return nil
			}
		}
	}
}

// done reports progress and whether every message has an outcome. The carriers' count is
// free; the ledger is asked only when it may be complete.
func (d *demo) done(ctx context.Context) (bool, error) {
	if d.cfg.Progress != nil {
		d.cfg.Progress(min(int(d.submits.messages.Load()), d.cfg.Messages))
	}
	if int(d.submits.messages.Load()) < d.cfg.Messages {
		return false, nil
	}
	totals, err := d.app.Ledger().Totals(ctx)
	if err != nil {
		return false, err
	}
	answered := int64(0)
	for state, n := range totals.Messages {
		if state.Final() || state == ledger.Accepted {
			answered += n - d.before.Messages[state]
		}
	}
	return answered >= int64(d.cfg.Messages), nil
}

// publish produces the messages as a service would: keyed by id, acknowledged by the broker.
func (d *demo) publish(ctx context.Context) error {
	connection := consume.Connection{Brokers: []string{d.private.Kafka.Address()}}
	options, err := connection.Options()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(options, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))...)
	if err != nil {
		return fmt.Errorf("demo producer: %w", err)
	}
	defer client.Close()
	var first atomic.Pointer[error]
	random := rand.New(rand.NewPCG(d.cfg.Seed, 0))
	for i := range d.cfg.Messages {
		topic, m := message(d.cfg.Seed, i, random)
		client.Produce(ctx, &kgo.Record{Topic: topic, Key: []byte(m.ID), Value: m.Append(nil)}, func(_ *kgo.Record, err error) {
			if err != nil {
				first.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := first.Load(); err != nil {
		return fmt.Errorf("publish: %w", *err)
	}
	return nil
}

// message makes the i-th message: one in ten a code, six transactional, three bulk; some
// long, some not in the GSM alphabet. The numbers are reserved for fiction.
func message(seed uint64, i int, random *rand.Rand) (topic string, m envelope.Message) {
	m = envelope.Message{
		ID:     fmt.Sprintf("demo-%d-%d", seed, i),
		To:     fmt.Sprintf("+447700900%03d", i%1000),
		From:   "DEMO",
		Tenant: []string{"shop", "bank", "clinic"}[i%3],
	}
	// Texts are signed, so that the carriers can tell a message that came twice from
	// another one that reads alike.
	sign := " [" + m.ID + "]"
	switch draw := random.IntN(10); {
	case draw == 0:
		topic, m.Text = "sms.otp", fmt.Sprintf("%06d is your code. Do not share it.", random.IntN(1_000_000))
	case draw < 7:
		topic, m.Text = "sms.transactional", fmt.Sprintf("Your order %d is on its way.", 10_000+i)
	default:
		topic, m.Text = "sms.bulk", "This weekend only: two for the price of one!"
	}
	m.Text += sign
	switch random.IntN(20) {
	case 0:
		m.Text += strings.Repeat(" Terms and conditions apply."+sign, 5)
	case 1:
		m.Text = "Ευχαριστούμε!" + sign + " " + m.Text
	}
	return topic, m
}

// tally is the carriers' own count of submits, by message and part.
type tally struct {
	messages atomic.Int64 // last parts, hence whole messages

	mu    sync.Mutex
	seen  map[string]int // guarded by mu
	twice int            // guarded by mu
}

// signature is what message signs its texts with.
var signature = regexp.MustCompile(`\[demo-\d+-\d+\]`)

func (t *tally) add(_ string, s smpptest.Submit) {
	if s.Part == s.Parts {
		t.messages.Add(1)
	}
	sign := signature.FindString(s.Text)
	if sign == "" {
		return // a last part so short that it holds no whole signature
	}
	key := sign + strconv.Itoa(s.Part)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[key]++; t.seen[key] > 1 {
		t.twice++
	}
}

// result compares the ledger's figures with the agreed shares.
func (d *demo) result(totals *ledger.Totals, carriedBy moves, took time.Duration) (*Result, error) {
	of := func(state ledger.State) int64 { return totals.Messages[state] - d.before.Messages[state] }
	r := &Result{
		Messages: d.cfg.Messages, Seed: d.cfg.Seed,
		Accepted: of(ledger.Accepted), Rejected: of(ledger.Rejected), Unknown: of(ledger.Unknown),
		Seconds: took.Seconds(), MessagesPerSecond: float64(d.cfg.Messages) / took.Seconds(),
	}
	d.submits.mu.Lock()
	r.DuplicatesSent = d.submits.twice
	d.submits.mu.Unlock()
	carried := int64(0)
	for _, w := range weights {
		now, was := channelTotal(totals, w.channel), channelTotal(&d.before, w.channel)
		c := Channel{
			Channel: w.channel, Configured: w.share,
			FirstChoice: now.FirstChoice - was.FirstChoice, Fallback: now.Fallback - was.Fallback,
			Sent: now.Attempts - was.Attempts, Accepted: now.Accepted - was.Accepted,
			Segments: now.Segments - was.Segments, CostMicros: now.CostMicros - was.CostMicros, Currency: now.Currency,
		}
		c.FirstChoiceShare = float64(c.FirstChoice) / float64(d.cfg.Messages)
		c.Deviation = c.FirstChoiceShare - c.Configured
		c.Carried = c.Accepted
		carried += c.Carried
		r.Channels = append(r.Channels, c)
	}
	for i := range r.Channels {
		r.Channels[i].CarriedShare = float64(r.Channels[i].Carried) / float64(max(carried, 1))
	}
	r.judge(d.doc, carriedBy.since(d.moved))
	return r, nil
}

// moves are how many messages a channel carried of the first choices of another, and why.
type moves map[ledger.CarriedRow]int64

// carried counts what was carried on the days from the beginning on. Runs that the folder holds of
// earlier ones count as well. All of it stands under version 1: there is one document.
func (d *demo) carried(ctx context.Context) (moves, error) {
	m := moves{}
	for day := d.began; ; day = admission.Day.End(day, d.doc.Timezone) {
		if day.After(time.Now()) {
			return m, nil
		}
		rows, err := d.app.Ledger().CarriedOn(ctx, day, d.doc.Timezone)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			n := r.Messages
			r.Version, r.Messages = 1, 0
			m[r] += n
		}
	}
}

// since are the moves that came after others.
func (m moves) since(before moves) (rows []ledger.CarriedRow) {
	for r, n := range m {
		if n -= before[r]; n > 0 {
			r.Messages = n
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b ledger.CarriedRow) int {
		return cmp.Or(cmp.Compare(a.FirstChoice, b.FirstChoice), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Cause, b.Cause))
	})
	return rows
}

// judge asks the daily report for its verdicts on this run: of the draws, and of what was carried.
func (r *Result) judge(doc *config.Routing, carried []ledger.CarriedRow) {
	route := doc.Routes[0].Name
	f := report.Figures{Day: time.Now(), Zone: doc.Timezone, Current: doc, Versions: map[int64]*config.Routing{1: doc}, Carried: carried}
	for _, c := range r.Channels {
		f.Choices = append(f.Choices, ledger.ChoiceRow{Version: 1, Route: route, Channel: c.Channel, FirstChoice: c.FirstChoice})
	}
	daily := report.NewDaily(&f)
	v := &daily.Routes[0]
	r.ChiSquareP = 1
	if v.PValue != nil {
		r.ChiSquareP = *v.PValue
	}
	r.Verdict, r.DrawsVerdict, r.TrafficVerdict, r.Text = v.TrafficVerdict, v.DrawsVerdict, v.TrafficVerdict, v.Text
}

func channelTotal(t *ledger.Totals, name string) ledger.ChannelTotal {
	for _, c := range t.Channels {
		if c.Channel == name {
			return c
		}
	}
	return ledger.ChannelTotal{}
}
