package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	defaultPartitions = 12
	topicTimeout      = 10 * time.Second
)

// KafkaConfig says what the broker is to be.
type KafkaConfig struct {
	// Folder holds the data and survives restarts; it is created when missing and
	// belongs to one process at a time.
	Folder string
	// Port on loopback; 0 takes a free one.
	Port int
	// Topics are created when they do not exist, with Partitions each (default 12).
	Topics     []string
	Partitions int
	// Unsynced leaves writing to the disk to the system, as a real broker does by
	// default. Only a measurement may want that: acknowledged records can be lost in a power cut.
	Unsynced bool
}

// Kafka is a broker inside this process.
type Kafka struct {
	cluster *kfake.Cluster
	address string
	lock    *lock
}

// StartKafka opens the folder and listens. What an earlier process wrote there and was
// acknowledged is there again, however that process ended: each write is on disk before
// it is acknowledged. Errors name the folder or the port and what mends them.
func StartKafka(ctx context.Context, cfg KafkaConfig) (*Kafka, error) {
	// An older folder may be open to others; its files hold numbers and texts of messages.
	if err := errors.Join(os.MkdirAll(cfg.Folder, 0o700), os.Chmod(cfg.Folder, 0o700)); err != nil { //nolint:gosec // A folder.
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
		return fmt.Errorf("port %d of the embedded Kafka is taken: stop what listens there or choose another one with --kafka-port: %w", cfg.Port, err)
	case err != nil:
		return fmt.Errorf("embedded Kafka in %s: %w", cfg.Folder, err)
	}
	k.cluster = cluster
	k.address = cluster.ListenAddrs()[0]
	partitions := cfg.Partitions
	if partitions == 0 {
		partitions = defaultPartitions
	}
	return k.createTopics(ctx, cfg.Topics, partitions)
}

// createTopics makes the topics that are not there yet.
func (k *Kafka) createTopics(ctx context.Context, topics []string, partitions int) error {
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
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s of the embedded Kafka: %w", topic.Topic, err)
		}
	}
	return nil
}

// Address is where clients connect, as host:port.
func (k *Kafka) Address() string { return k.address }

// Port is the port of Address.
func (k *Kafka) Port() int {
	_, port, err := net.SplitHostPort(k.address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(port)
	return n
}

// Close writes what is open and gives the folder free. Clients see their connections
// end. It may be called twice.
func (k *Kafka) Close() error {
	if k.cluster != nil {
		k.cluster.Close()
	}
	return k.lock.release()
}
