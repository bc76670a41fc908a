package ledger_test

import (
	"errors"
	"testing"
	"time"

	"dispatcher/ledger"
)

// TestTheLoginStandsBesideTheAuthorThatWasTold, and a caller cannot set the login.
func TestTheLoginStandsBesideTheAuthorThatWasTold(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	apply(t, rig.l, day(10))
	if _, err := rig.db.Exec(t.Context(), `insert into dispatcher.operator_actions
		(author, reason, action, subject, login) values ('ann', 'x', 'cancel', 'm', 'claimed')`); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"routing_versions", "operator_actions"} {
		if own := scalar[bool](t, rig.db, `select bool_and(login <> '' and login <> 'claimed')
			from audit.`+table); !own {
			t.Errorf("%s has another login, or none", table)
		}
	}
}

// TestTheLoginIsRecordedWhereverAnAuthorIs: with an ambiguity when it is settled, with an opt-out
// when it begins and when it ends, with erasures and with windows that were started again.
func TestTheLoginIsRecordedWhereverAnAuthorIs(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	apply(t, rig.l, day(10))
	m := claimAll(t, rig.l, batch("m", 1), "a").Messages[0]
	s := unknown(m)
	s.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.Lookup, Until: time.Now().Add(time.Hour), NextAt: time.Now(),
	}
	settleAll(t, rig.l, []ledger.Settlement{s})
	login := func(column, view string) string {
		return scalar[string](t, rig.db, `select coalesce(min(`+column+`), 'none') from audit.`+view)
	}
	if got := login("login", "ambiguous"); got != "none" {
		t.Errorf("an open ambiguity has the login %q", got)
	}
	if !resolve(t, rig.l, final(m)) {
		t.Fatal("nothing was settled")
	}
	execute(t, rig.db, `insert into dispatcher.opt_outs (tenant, recipient, source, author, login,
		ended_login) values ('shop', 1, 'command', 'ann', 'claimed', 'claimed')`)
	if got := login("ended_login", "opt_outs"); got != "none" {
		t.Errorf("an opt-out that holds was ended by the login %q", got)
	}
	execute(t, rig.db, `update dispatcher.opt_outs set until = clock_timestamp(),
		ended_by = 'command', ended_author = 'ann', ended_login = 'claimed'`)
	execute(t, rig.db, `insert into dispatcher.erasures (author, reason, number_hmac, login)
		values ('ann', 'asked', 1, 'claimed')`)
	execute(t, rig.db, `insert into dispatcher.limit_restarts (channel, scope, window_seconds, unit,
		version, author, reason, was_start, was_granted, window_start, granted, login)
		values ('a', 'channel', 60, 'messages', 1, 'ann', 'clock', now(), 0,
		now() - interval '1 minute', 0, 'claimed')`)
	own := scalar[string](t, rig.db, `select session_user`)
	for _, at := range [][2]string{
		{"login", "ambiguous"},
		{"login", "opt_outs"},
		{"ended_login", "opt_outs"},
		{"login", "erasures"},
		{"login", "limit_restarts"},
	} {
		if got := login(at[0], at[1]); got == "none" || got == "claimed" {
			t.Errorf("%s of audit.%s is %q; this session is of %q", at[0], at[1], got, own)
		}
	}
	execute(t, rig.db, `update dispatcher.ambiguous set login = 'claimed'`)
	execute(t, rig.db, `update dispatcher.opt_outs set login = 'claimed', ended_login = 'claimed'`)
	for _, at := range [][2]string{
		{"login", "ambiguous"},
		{"login", "opt_outs"},
		{"ended_login", "opt_outs"},
	} {
		if got := login(at[0], at[1]); got == "claimed" {
			t.Errorf("an update claims %s of audit.%s", at[0], at[1])
		}
	}
}

func TestARequestIsTakenOnce(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	request := func(who, key, digest string) *ledger.Request {
		return &ledger.Request{
			Principal: who, Key: key, Digest: []byte(digest), Attempt: who + digest,
		}
	}
	begin := func(who, key, digest string) (*ledger.StoredAnswer, error) {
		return l.Requests.Begin(t.Context(), request(who, key, digest))
	}
	if known, err := begin("ann", "k", "d"); known != nil || err != nil {
		t.Fatalf("a new one: %+v, %v", known, err)
	}
	if _, err := begin("ann", "k", "d"); !errors.Is(err, ledger.ErrUnderway) {
		t.Errorf("while it is under way: %v", err)
	}
	if known, err := begin("bob", "k", "d"); known != nil || err != nil {
		t.Errorf("the key of another principal: %+v, %v", known, err)
	}
	forget := func(r *ledger.Request) {
		if err := l.Requests.Forget(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	forget(&ledger.Request{Principal: "ann", Key: "k", Attempt: "another"})
	answer := ledger.StoredAnswer{Status: 200, Header: "7", Body: []byte("{}")}
	if err := l.Requests.Finish(t.Context(), request("ann", "k", "d"), &answer); err != nil {
		t.Fatal(err)
	}
	forget(request("ann", "k", "d")) // it has an answer
	if known, err := begin("ann", "k", "d"); err != nil || known == nil || known.Status != 200 ||
		known.Header != "7" || string(known.Body) != "{}" {
		t.Errorf("again: %+v, %v", known, err)
	}
	if _, err := begin("ann", "k", "other"); !errors.Is(err, ledger.ErrOtherRequest) {
		t.Errorf("another request: %v", err)
	}
	forget(request("bob", "k", "d"))
	if known, err := begin("bob", "k", "other"); known != nil || err != nil {
		t.Errorf("after it was forgotten: %+v, %v", known, err)
	}
}
