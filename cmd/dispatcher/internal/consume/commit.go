package consume

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// committed is told of every commit that the client made by the clock. A commit that was
// refused is made again: by the next tick, or by the records' next reader.
func (r *reader) committed(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
	if err == nil {
		err = refused(answer)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.suspect(err, "offsets not committed; records may be read again, which the ledger notices: check the group's rights and coordinator")
	}
}

// refused is the first error of a commit's partitions.
func refused(answer *kmsg.OffsetCommitResponse) error {
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return fmt.Errorf("commit of %s/%d: %w", topic.Topic, partition.Partition, err)
			}
		}
	}
	return nil
}
