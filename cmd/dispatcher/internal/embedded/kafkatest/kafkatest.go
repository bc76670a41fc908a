// Package kafkatest gives the in-process Kafka of tests the faults of a real one: it refuses
// requests, applies them and answers with an error, or closes the connection.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Always means without end, as a number of times.
const Always = -1

// Observe calls look with each request of a kind before it is carried out.
func Observe(c *kfake.Cluster, key kmsg.Key, look func(kmsg.Request)) {
	c.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
		look(request)
		return nil, nil, false
	})
}

// Refuse answers the next requests of a kind with an error and does not carry them out.
func Refuse(c *kfake.Cluster, key kmsg.Key, times int, answer *kerr.Error) *Fault {
	return add(c, key, times,
		func(request kmsg.Request) (kmsg.Response, error) { return failed(request, answer), nil })
}

// Cut closes the connections of the next requests of a kind and does not carry them out.
func Cut(c *kfake.Cluster, key kmsg.Key, times int) *Fault {
	return add(c, key, times,
		func(kmsg.Request) (kmsg.Response, error) { return nil, errors.New("cut by the test") })
}

// mark is a tag on the copies with which FailApplied applies requests. No version of Kafka uses it.
const mark = 4711

// FailApplied applies the next requests of a kind and answers them with an error. The requests of
// that kind must have tags, as those of current clients do.
func FailApplied(
	t testing.TB, c *kfake.Cluster, key kmsg.Key, times int, answer *kerr.Error,
) *Fault {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // outlives t.Context, like the cluster
	t.Cleanup(func() { stop(); client.Close() })
	return add(c, key, times, func(request kmsg.Request) (kmsg.Response, error) {
		broker := client.Broker(int(c.CurrentNode()))
		c.SleepControl(func() { // lets the cluster handle other requests, among them the copy
			response, err := broker.Request(ctx, marked(request))
			if err == nil {
				err = failure(response)
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("a request was not carried out: %v", err)
			}
		})
		return failed(request, answer), nil
	})
}

// Fault is a fault of a cluster.
type Fault struct {
	mu   sync.Mutex
	left int           // guarded by mu; negative means without end
	hits int           // guarded by mu
	more chan struct{} // guarded by mu; closed at the next hit
}

// add makes the given function answer the next requests of a kind.
func add(
	c *kfake.Cluster, key kmsg.Key, times int, answer func(kmsg.Request) (kmsg.Response, error),
) *Fault {
	f := &Fault{left: times, more: make(chan struct{})}
	c.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if isMarked(request) || !f.take() {
			return nil, nil, false
		}
		response, err := answer(request)
		f.hit()
		return response, err, true
	})
	return f
}

func (f *Fault) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return false
	}
	f.left--
	return true
}

func (f *Fault) hit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hits++
	close(f.more)
	f.more = make(chan struct{})
}

// Hits returns how many requests have met the fault.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Wait waits until n requests have met the fault.
func (f *Fault) Wait(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		hits, more := f.hits, f.more
		f.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d requests met the fault: %w", hits, n, ctx.Err())
		}
	}
}

// Remove ends the fault.
func (f *Fault) Remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
}

// failed is a response with an error for every partition in a request.
func failed(request kmsg.Request, answer *kerr.Error) kmsg.Response {
	switch r := request.(type) {
	case *kmsg.ProduceRequest:
		response := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range r.Topics {
			of := kmsg.NewProduceResponseTopic()
			of.Topic, of.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, answer.Code
				of.Partitions = append(of.Partitions, p)
			}
			response.Topics = append(response.Topics, of)
		}
		return response
	case *kmsg.OffsetCommitRequest:
		response := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, topic := range r.Topics {
			of := kmsg.NewOffsetCommitResponseTopic()
			of.Topic, of.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewOffsetCommitResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, answer.Code
				of.Partitions = append(of.Partitions, p)
			}
			response.Topics = append(response.Topics, of)
		}
		return response
	}
	panic(fmt.Sprintf("kafkatest: no answer to %T is known", request))
}

// failure is the first error in a response.
func failure(response kmsg.Response) error {
	switch r := response.(type) {
	case *kmsg.ProduceResponse:
		for _, topic := range r.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					return err
				}
			}
		}
	case *kmsg.OffsetCommitResponse:
		for _, topic := range r.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// marked is a copy of a request to send again; copied because the client changes what it sends.
func marked(request kmsg.Request) kmsg.Request {
	switch r := request.(type) {
	case *kmsg.ProduceRequest:
		again := *r
		again.UnknownTags = kmsg.Tags{}
		again.UnknownTags.Set(mark, nil)
		return &again
	case *kmsg.OffsetCommitRequest:
		again := *r
		again.UnknownTags = kmsg.Tags{}
		again.UnknownTags.Set(mark, nil)
		return &again
	}
	panic(fmt.Sprintf("kafkatest: %T cannot be sent once more", request))
}

func isMarked(request kmsg.Request) (found bool) {
	look := func(tag uint32, _ []byte) { found = found || tag == mark }
	switch r := request.(type) {
	case *kmsg.ProduceRequest:
		r.UnknownTags.Each(look)
	case *kmsg.OffsetCommitRequest:
		r.UnknownTags.Each(look)
	}
	return found
}
