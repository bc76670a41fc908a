package ledger_test

import (
	"errors"
	"testing"

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

func TestARequestIsTakenOnce(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	request := func(who, key, digest string) *ledger.Request {
		return &ledger.Request{
			Principal: who, Key: key, Digest: []byte(digest), Attempt: who + digest,
		}
	}
	begin := func(who, key, digest string) (*ledger.Answer, error) {
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
	answer := ledger.Answer{Status: 200, Header: "7", Body: []byte("{}")}
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
