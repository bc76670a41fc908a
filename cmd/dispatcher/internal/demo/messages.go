package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider/smpp/smpptest"
)

// publish produces the messages and returns when the broker has acknowledged them.
func (d *demo) publish(ctx context.Context) error {
	random := rand.New(rand.NewPCG(d.cfg.Seed, 0))
	next := func(n int) (topic, key string, value []byte) {
		topic, m := message(d.cfg.Seed, n, random)
		return topic, m.ID, m.Append(nil)
	}
	return d.servers.Kafka.Produce(ctx, 0, d.cfg.Messages, next)
}

// message makes the i-th message. One in ten is an OTP, six are transactional, three bulk; some are
// long, some not in the GSM alphabet. The numbers are reserved for fiction.
func message(seed uint64, i int, random *rand.Rand) (topic string, m envelope.Message) {
	m = envelope.Message{
		ID:     fmt.Sprintf("demo-%d-%d", seed, i),
		To:     fmt.Sprintf("+447700900%03d", i%1000),
		From:   "DEMO",
		Tenant: []string{"shop", "bank", "clinic"}[i%3],
	}
	// Texts contain the id, so that the carriers can tell a repeated message from another one with the
	// same words.
	sign := " [" + m.ID + "]"
	switch draw := random.IntN(10); {
	case draw == 0:
		topic = "sms.otp"
		m.Text = fmt.Sprintf("%06d is your code. Do not share it.", random.IntN(1_000_000))
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

// submitCount is the carriers' own count of submits, by message and part.
type submitCount struct {
	messages atomic.Int64 // last parts, one per message

	mu    sync.Mutex
	seen  map[string]int // guarded by mu
	twice int            // guarded by mu
}

// signature is the part of a text that identifies its message.
var signature = regexp.MustCompile(`\[demo-\d+-\d+\]`)

func (sc *submitCount) add(_ string, s smpptest.Submit) {
	if s.Part == s.Parts {
		sc.messages.Add(1)
	}
	sign := signature.FindString(s.Text)
	if sign == "" {
		return // a last part that is too short for a signature
	}
	key := sign + strconv.Itoa(s.Part)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.seen[key]++; sc.seen[key] > 1 {
		sc.twice++
	}
}
