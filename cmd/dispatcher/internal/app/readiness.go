package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/config"
	"dispatcher/provider"
)

// readiness says whether this process can do its work, even while it starts. Only the check of the
// database makes a request.
type readiness struct {
	settings *config.Settings
	outages  *outage.Log
	begin    <-chan struct{} // closed when this process may take messages

	ping     atomic.Pointer[func(context.Context) error]
	reloader atomic.Pointer[reloader]
	ready    atomic.Pointer[func() map[string]string] // see pipeline.Dispatcher.Unready
	consumer atomic.Pointer[kafka.Consumer]

	refused atomic.Pointer[refusal] // the latest write that PostgreSQL refused

	mu    sync.Mutex
	since map[string]time.Time // guarded by mu; when each failing condition began to fail
}

// refusal is a write that PostgreSQL refused, because it is read-only or its disk is full.
type refusal struct {
	err error
	at  time.Time
}

// refusalLasts is how long the database counts as away after such a write. Failed writes are tried
// again within two seconds; a heartbeat, which needs no further space, may succeed meanwhile.
const refusalLasts = 10 * time.Second

// refusesWrites reports whether an error is such a refusal.
func refusesWrites(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == readOnly || pg.Code == diskFull)
}

// noticeEvery is how often the conditions are checked without requests, so that "since" is right.
const noticeEvery = time.Second

// run records when each condition began to fail.
func (r *readiness) run(ctx context.Context) {
	ticker := time.NewTicker(noticeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.date(r.local(), time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// checks lists all conditions.
func (r *readiness) checks(ctx context.Context) []console.Check {
	checks := append([]console.Check{r.database(ctx)}, r.local()...)
	r.date(checks, time.Now())
	return checks
}

// local lists the conditions that can be checked without a request.
func (r *readiness) local() []console.Check {
	checks := []console.Check{r.routing(), r.kafka()}
	return append(checks, r.channels()...)
}

// date fills in since when each condition has failed.
func (r *readiness) date(checks []console.Check, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range checks {
		c := &checks[i]
		began, known := r.since[c.Name]
		switch {
		case c.OK:
			delete(r.since, c.Name)
			continue
		case !known:
			if r.since == nil {
				r.since = map[string]time.Time{}
			}
			began = now
			if c.Since != nil {
				began = *c.Since
			}
			r.since[c.Name] = began
		}
		c.Since = new(began.UTC().Truncate(time.Millisecond))
	}
}

// database pings PostgreSQL. A database that refuses writes counts as away, although it answers.
func (r *readiness) database(ctx context.Context) console.Check {
	check := console.Check{Name: "database", Vital: true}
	if since, away := r.outages.Since(postgres); away {
		check.Since = &since
	}
	ping := r.ping.Load()
	if ping == nil {
		check.Detail = "PostgreSQL has not been connected to yet"
		check.Fix = "wait a moment; if it stays, start PostgreSQL or correct " +
			"DISPATCHER_POSTGRES_URL, as the log says"
		return check
	}
	err := (*ping)(ctx)
	if last := r.refused.Load(); err == nil && last != nil && time.Since(last.at) < refusalLasts {
		err = last.err
	}
	if check.OK = err == nil; check.OK {
		check.Since = nil
		return check
	}
	check.Detail, check.Fix = postgresProblem(r.settings, err)
	return check
}

// routing reports whether messages can be planned.
func (r *readiness) routing() console.Check {
	check := console.Check{Name: "routing", Vital: true}
	reloader := r.reloader.Load()
	switch {
	case reloader == nil:
		check.Detail = "no routing is loaded yet"
		check.Fix = "wait until the database answers; the log names what else is wrong"
	case reloader.unusable.Load() != nil:
		check.Detail = fmt.Sprintf("the routing in force cannot be used here: %v",
			*reloader.unusable.Load())
		check.Fix = `apply a corrected document with "dispatcher routing apply", ` +
			`or go back with "dispatcher routing rollback"`
	default:
		check.OK = true
	}
	return check
}

// kafka reports whether messages can be read. If one topic is missing, the other lanes work, so the
// check only mentions it.
func (r *readiness) kafka() console.Check {
	check := console.Check{Name: "kafka", Vital: true}
	consumer := r.consumer.Load()
	if consumer == nil {
		check.Detail = "Kafka is not read yet"
		check.Fix = "wait until the database answers and a routing is loaded"
		return check
	}
	if since, away := r.outages.Since(kafka.OutageName); away {
		check.Since = &since
		check.Detail = "no Kafka broker answers, or none takes status events"
		check.Fix = "check that the brokers run, DISPATCHER_KAFKA_BROKERS and the TLS and SASL " +
			"settings"
		return check
	}
	var out, told []string
	for _, lane := range consumer.State() {
		if !lane.Joined {
			out = append(out, lane.Lane)
		}
		if lane.Away != "" {
			told = append(told, lane.Away)
		}
	}
	select {
	case <-r.begin:
	default:
		check.Detail = "this process takes no messages for now, because those before it ended " +
			"within seconds"
		check.Fix = "find in their logs why they ended; this one begins by itself"
		return check
	}
	if len(out) > 0 {
		check.Detail = "this process is not in the consumer group for the lanes " + strings.Join(
			out,
			", ",
		)
		check.Fix = "wait for the group to settle; if it stays, give this user READ on the groups " +
			`DISPATCHER_KAFKA_GROUP.LANE, and see "dispatcher doctor"`
		return check
	}
	check.OK = true
	check.Detail = strings.Join(told, ". ")
	return check
}

// channels has one check for all channels together and one for each.
func (r *readiness) channels() []console.Check {
	all := console.Check{Name: "channels", Vital: true}
	ready, reloader := r.ready.Load(), r.reloader.Load()
	if ready == nil || reloader == nil {
		all.Detail, all.Fix = "no channel is connected yet", "wait until a routing is loaded"
		return []console.Check{all}
	}
	states, troubles := (*ready)(), reloader.trouble()
	checks := []console.Check{all}
	for _, channel := range reloader.channels() {
		check := channelCheck(channel.Name, states[channel.Name], troubles[channel.Name])
		if channel.State == config.Enabled && sends(states[channel.Name]) {
			checks[0].OK = true
		}
		checks = append(checks, check)
	}
	if !checks[0].OK {
		checks[0].Detail = "no enabled channel can send"
		checks[0].Fix = "see the conditions of the channels; " +
			`"dispatcher channel enable" for one that is disabled or drained`
	}
	return checks
}

// sends reports whether a channel takes messages, now or soon.
func sends(why string) bool {
	return why == "" || slices.Contains([]string{provider.Probing, provider.Busy, "throttled"}, why)
}

// channelCheck is the condition of one channel.
func channelCheck(name, why string, trouble error) console.Check {
	check := console.Check{
		Name:   "channel " + name,
		OK:     why == "" && trouble == nil,
		Detail: why,
		Fix:    channelFixes[why],
	}
	if trouble != nil {
		check.Detail = strings.TrimSpace(fmt.Sprintf(
			"%s the settings in force cannot be used here: %v", why, trouble))
		check.Fix = channelFixes[provider.Misconfigured]
	}
	return check
}

// channelFixes are what to do, by the reason why a channel is not ready.
var channelFixes = map[string]string{
	provider.Connecting: "check the address in the channel's settings and the network; " +
		`"dispatcher doctor" tries it`,
	provider.Unbound: "the connection was lost and is made again by itself; if it stays, " +
		"ask the carrier",
	provider.BindRefused: "the carrier refuses the login: check system_id, password_file and " +
		"how many binds the account may have",
	provider.Closed: "the channel is being closed; wait a moment",
	provider.BreakerOpen: "submits failed, and one is tried every few seconds; " +
		`"breaker changed" in the log names the carrier's code`,
	provider.Probing: "the channel gets one message to see whether it is back; wait for " +
		"its answer",
	provider.Misconfigured: "correct the file or setting that it names; it is tried again every " +
		"ten seconds",
	provider.Busy: "so much is queued for the channel that more would come late; add " +
		"instances, or raise its window or connections",
	"throttled": "the provider asked to slow down; lower the channel's limit if this " +
		"comes often",
	"removed": "the channel is not connected in this process yet; wait a moment",
}
