package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// Group is the consumer group of a lane. Each lane has its own, so that a rebalance of one lane, or
// a member of it that does not answer, does not affect the others.
func Group(group, lane string) string { return group + "." + lane }

// errFenced ends a reader whose static membership another process has taken over.
var errFenced = errors.New("another process is a member of the group under the same instance id")

// OnGroupManageError is called by the client when it loses its membership.
func (r *reader) OnGroupManageError(err error) {
	if errors.Is(err, kerr.FencedInstanceID) {
		r.fenced.Store(true)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endHandle()
	}
}

var _ kgo.HookGroupManageError = (*reader)(nil)

// leave ends the static membership, which the client itself lets run into the session timeout. So
// when a process stops in order, its partitions pass to others at once. The broker compares the
// member id, so a successor under the same instance id keeps its membership.
func (r *reader) leave(ctx context.Context, memberID string) error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = Group(r.cfg.Group, r.lane)
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.InstanceID = memberID, &r.cfg.Instance
	request.Members = append(request.Members, member)
	answer, err := request.RequestWith(ctx, r.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

// close commits what is marked (see revoked) and leaves the group. It is bounded even when no
// broker answers.
func (r *reader) close() {
	defer r.cancel()
	defer time.AfterFunc(2*shutdownTimeout, r.cancel).Stop()
	defer func() {
		r.client.CloseAllowingRebalance()
		// Close leaves the group once more, and polls at its end: the goroutine that leaves must not wait
		// for that poll.
		r.client.AllowRebalance()
	}()
	if r.cfg.Instance == "" || r.fenced.Load() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*shutdownTimeout)
	defer stop()
	r.client.AllowRebalance()
	err := r.client.LeaveGroupContext(ctx)
	// Only now: a join that was under way has brought the id.
	if memberID, _ := r.client.GroupMetadata(); err == nil && memberID != "" {
		err = r.leave(ctx, memberID)
	}
	if _, away := r.cfg.Outages.Since(OutageName); err != nil && !away {
		r.cfg.Outages.Fault(outage.Report{
			What: r.reporter(), Reporter: r.reporter(),
			Err: fmt.Errorf("leave group %s: %w", Group(r.cfg.Group, r.lane), err),
			Sentence: fmt.Sprintf("the lane's partitions pass to other processes after %s",
				sessionTimeout),
		})
	}
}
