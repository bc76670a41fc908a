package sandbox

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// smppCarrier is a carrier with SMPP.
type smppCarrier struct {
	server  *smpptest.Server
	profile Profile
	counter *counter
	rate    rate
	number  atomic.Uint64
	first   uint64 // number before the first message_id
	// started is closed once server is set.
	started chan struct{}

	mu     sync.Mutex
	closed bool                 // guarded by mu
	timers map[*time.Timer]bool // guarded by mu: receipts still to come
}

func startSMPP(c *Carrier, a *account, first uint64, t *counter) (*smppCarrier, error) {
	s := &smppCarrier{
		first:   first,
		profile: c.Profile,
		counter: t,
		rate:    rate{max: c.Profile.Rate},
		started: make(chan struct{}),
		timers:  map[*time.Timer]bool{},
	}
	server, err := smpptest.Start(smpptest.Config{
		Name: "sandbox", Addr: c.Address, SystemID: a.systemID, Password: a.password,
		OnSubmit:  s.planReceipts,
		Behaviour: smpptest.Behaviour{Decide: s.decide, MessageID: s.messageID},
	})
	if err != nil {
		return nil, err
	}
	s.server = server
	close(s.started)
	return s, nil
}

// messageID is decimal, so that planReceipts can read the number of the submit from it.
func (s *smppCarrier) messageID(n uint64) string { return strconv.FormatUint(s.first+n, 10) }

// statuses are the replies as SMPP statuses.
var statuses = map[providertest.Reply]pdu.Status{
	providertest.Reject: pdu.StatusInvDstAdr, providertest.Refuse: pdu.StatusSysErr,
	providertest.Throttle: pdu.StatusThrottled,
	// Not taken; no answer is sent.
	providertest.Lose: pdu.StatusSysErr, providertest.Cut: pdu.StatusSysErr,
}

func (s *smppCarrier) decide(entry smpptest.Submit) smpptest.Answer {
	v := s.profile.verdict(s.number.Add(1))
	if s.rate.over(entry.At) {
		v = providertest.Throttle
	}
	s.counter.submitted(v)
	answer := smpptest.Answer{
		Status:  statuses[v],
		Delay:   s.profile.Latency + chance(s.profile.Jitter),
		Receipt: &smpptest.Receipt{Never: true},
	}
	switch v {
	case providertest.Lose:
		answer.State = smpptest.Dropped
	case providertest.Cut:
		answer.State = smpptest.Cut
	case providertest.Accept, providertest.Reject, providertest.Refuse, providertest.Throttle:
	}
	return answer
}

// words are the message states of SMPP 3.4, appendix B, in receipts.
var words = map[provider.ReceiptState]string{
	provider.Delivered:   "DELIVRD",
	provider.Undelivered: "UNDELIV",
}

// planReceipts schedules the receipts of an accepted submit.
func (s *smppCarrier) planReceipts(entry smpptest.Submit) {
	if !entry.Accepted() {
		return
	}
	accepted, err := strconv.ParseUint(entry.MessageID, 10, 64)
	if err != nil {
		return // not one of ours
	}
	n := s.profile.receiptPlan(accepted - s.first)
	n.none = n.none || !entry.Receipt
	s.counter.planned(n)
	if n.none {
		return
	}
	wait := s.profile.Latency + s.profile.Jitter + s.profile.ReceiptDelay
	if n.early {
		s.after(0, entry, words[n.state])
	} else {
		s.after(wait, entry, words[n.state])
	}
	if n.twice {
		s.after(wait+s.profile.ReceiptDelay/2, entry, words[n.state])
	}
}

// after sends a receipt after d, unless the carrier is closed by then.
func (s *smppCarrier) after(d time.Duration, entry smpptest.Submit, word string) {
	<-s.started
	if d == 0 {
		s.server.SendReceipt(entry, word)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		delete(s.timers, timer)
		s.mu.Unlock()
		s.server.SendReceipt(entry, word)
	})
	s.timers[timer] = true
}

// inbound passes the message to the server, which sends it once there is a bind.
func (s *smppCarrier) inbound(_ context.Context, in provider.Inbound) error {
	s.server.SendInbound(
		smpptest.Inbound{
			From: strings.TrimPrefix(in.From, "+"),
			To:   strings.TrimPrefix(in.To, "+"),
			Text: in.Text,
			ID:   in.Reference,
		},
	)
	return nil
}

func (s *smppCarrier) address() string { return s.server.Addr() }

func (s *smppCarrier) unread() int {
	return int(s.server.Stats().Unread) //nolint:gosec // Counts of one run.
}

// callsRefused counts receipts that were not, or not yet, answered with ESME_ROK.
func (s *smppCarrier) callsRefused() int {
	stats := s.server.Stats()
	taken := min(stats.ReceiptsTaken, stats.ReceiptsSent)
	return int(stats.ReceiptsSent - taken) //nolint:gosec // Counts of one run.
}

func (s *smppCarrier) close() {
	s.mu.Lock()
	s.closed = true
	for timer := range s.timers {
		timer.Stop()
	}
	s.mu.Unlock()
	s.server.Close()
}
