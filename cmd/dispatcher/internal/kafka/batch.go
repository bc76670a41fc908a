package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
)

// batch is what one call of Handle gets, with the positions to mark after it. It is never changed.
type batch struct {
	jobs []decide.Job  // in order within each partition; nil when there are none
	last []*kgo.Record // the last record of each partition
}

// newBatch decodes the records. A record that cannot be used is a job like any other: it has its
// problem and the original bytes, and reading of its partition goes on.
func newBatch(lane string, fetches kgo.Fetches, cfg *ConsumerConfig) batch {
	var b batch
	if n := fetches.NumRecords(); n > 0 {
		b.jobs = make([]decide.Job, 0, n)
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, record := range p.Records {
			b.jobs = append(b.jobs, newJob(lane, record, cfg))
		}
		if n := len(p.Records); n > 0 {
			b.last = append(b.last, p.Records[n-1])
		}
	})
	return b
}

func newJob(lane string, record *kgo.Record, cfg *ConsumerConfig) decide.Job {
	// A rewritten record is stored, so that it means the same wherever and whenever it is decoded.
	message, rewritten, problem := envelope.DecodeRewritten(record.Value, cfg.AllowUnknown,
		cfg.Rewrite)
	job := decide.Job{
		Lane: lane,
		Origin: decide.Origin{
			Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
		},
		Produced:  record.Timestamp,
		Raw:       record.Value,
		Rewritten: rewritten,
		Message:   message,
		Problem:   problem,
	}
	if cfg.Traceparent != nil && job.Problem == nil && job.Message.Traceparent == "" {
		trace(&job, cfg.Traceparent(record))
	}
	return job
}

// trace adds a trace to the stored job. The digest of a message does not depend on it.
func trace(job *decide.Job, traceparent string) {
	if traceparent == "" {
		return
	}
	value := job.Raw
	if job.Rewritten != nil {
		value = job.Rewritten
	}
	job.Message.Traceparent = traceparent
	job.Rewritten = envelope.WithTraceparent(value, traceparent)
}

// and is the batch followed by another.
func (b batch) and(next batch) batch {
	return batch{
		jobs: slices.Concat(b.jobs, next.jobs), last: slices.Concat(b.last, next.last),
	}
}

// without is the batch without the records of the given partitions.
func (b batch) without(partitions map[string][]int32) batch {
	var rest batch
	for _, job := range b.jobs {
		if !slices.Contains(partitions[job.Origin.Topic], job.Origin.Partition) {
			rest.jobs = append(rest.jobs, job)
		}
	}
	for _, record := range b.last {
		if !slices.Contains(partitions[record.Topic], record.Partition) {
			rest.last = append(rest.last, record)
		}
	}
	return rest
}
