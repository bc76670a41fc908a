package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// defaultPartitions are few, because each partition that a write touches is synced to disk by
	// itself.
	defaultPartitions = 4
	topicTimeout      = 10 * time.Second
)

// KafkaConfig is the configuration of the broker.
type KafkaConfig struct {
	// Folder holds the data and survives restarts. It is created when missing and belongs to one
	// process at a time.
	Folder string
	// Port on loopback; 0 takes a free one.
	Port int
	// Topics are created when they do not exist, with Partitions each (default 4).
	Topics     []string
	Partitions int
	// Unsynced does not sync writes to disk, as a real broker does by default. Only use it for
	// measurements: acknowledged records can be lost in a power cut.
	Unsynced bool
}

// Kafka is a broker inside this process.
type Kafka struct {
	cluster *kfake.Cluster
	address string
	lock    *lock
}

// StartKafka opens the folder and listens. Acknowledged records of an earlier process are still
// there, however that process ended, because each write is on disk before it is acknowledged.
// Errors name the folder or the port and what to do about them.
func StartKafka(ctx context.Context, cfg KafkaConfig) (*Kafka, error) {
	// An existing folder may be readable by others; its files hold numbers and texts of messages.
	err := os.MkdirAll(cfg.Folder, 0o700)
	if err == nil {
		err = os.Chmod(cfg.Folder, 0o700) //nolint:gosec // A folder.
	}
	if err != nil {
		return nil, fmt.Errorf("folder of the embedded Kafka: %w", err)
	}
	held, err := lockFolder(cfg.Folder)
	if err != nil {
		return nil, err
	}
	k := &Kafka{lock: held}
	if err := k.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Kafka) open(ctx context.Context, cfg KafkaConfig) error {
	options := []kfake.Opt{
		kfake.Ports(cfg.Port),
		kfake.ClusterID("dispatcher-embedded"),
		kfake.DataDir(filepath.Join(cfg.Folder, "log")),
	}
	if !cfg.Unsynced {
		options = append(options, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(options...)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf(
			"port %d of the embedded Kafka is taken: stop what listens there or choose another "+
				"one with --kafka-port: %w",
			cfg.Port,
			err,
		)
	case err != nil:
		return fmt.Errorf("embedded Kafka in %s: %w", cfg.Folder, err)
	}
	k.cluster = cluster
	k.address = cluster.ListenAddrs()[0]
	return k.CreateTopics(ctx, cmp.Or(cfg.Partitions, defaultPartitions), cfg.Topics...)
}

// CreateTopics creates the topics that do not exist yet, with that many partitions each.
func (k *Kafka) CreateTopics(ctx context.Context, partitions int, topics ...string) error {
	if len(topics) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, topicTimeout)
	defer stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.address))
	if err != nil {
		return fmt.Errorf("client of the embedded Kafka: %w", err)
	}
	defer client.Close()
	request := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range topics {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), 1
		request.Topics = append(request.Topics, topic)
	}
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create the topics of the embedded Kafka: %w", err)
	}
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil &&
			!errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s of the embedded Kafka: %w", topic.Topic, err)
		}
	}
	return nil
}

// Produce writes the messages with the numbers from first to last-1 as a service would: keyed, and
// acknowledged by the broker when it returns. message returns each; it may block to spread them.
func (k *Kafka) Produce(
	ctx context.Context, first, last int, message func(n int) (topic, key string, value []byte),
) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(k.address), kgo.ProducerLinger(0), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return fmt.Errorf("producer at the embedded Kafka: %w", err)
	}
	defer client.Close()
	var failed atomic.Pointer[error] // the first failure
	for n := first; n < last; n++ {
		topic, key, value := message(n)
		record := &kgo.Record{Topic: topic, Key: []byte(key), Value: value}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("produce: %w", *err)
	}
	return nil
}

// Address is where clients connect, as host:port.
func (k *Kafka) Address() string { return k.address }

// Close flushes, closes all connections and unlocks the folder. It may be called twice.
func (k *Kafka) Close() error {
	if k.cluster != nil {
		k.cluster.Close()
	}
	return k.lock.release()
}

// lock reserves a data folder for one process. The kernel drops it when the process ends, in
// whatever way, so there is no stale lock to clean up.
type lock struct {
	file *os.File
	once sync.Once
	err  error // guarded by once
}

// lockFolder takes the lock; the error says which process to stop.
func lockFolder(folder string) (*lock, error) {
	path := filepath.Join(folder, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &lock{file: file}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf(
			"data folder %s is in use by another dispatcher: stop that one or choose another "+
				"folder with DISPATCHER_DATA_DIR",
			folder,
		)
	} else {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, errors.Join(err, file.Close())
}

// release unlocks the folder. The file stays, because another process may have just locked it. To
// close the file is not enough: a child that this process is starting has it open until its exec.
func (l *lock) release() error {
	l.once.Do(func() {
		l.err = errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
	})
	return l.err
}
