package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Defaults of topics: enough partitions for the processes that share a lane, and enough replicas to
// lose a broker without losing a message.
const (
	defaultPartitions = 12
	defaultReplicas   = 3
)

// States of a topic in "topics create".
const (
	topicCreated = "created"
	topicMissing = "missing" // would be created; with --dry-run
	topicPresent = "exists"
	topicDiffers = "differs" // exists, but differs from the flags
	topicFailed  = "failed"
)

// topicState is one topic that the dispatcher reads or writes.
type topicState struct {
	Topic             string   `json:"topic"`
	Use               string   `json:"use"`
	State             string   `json:"state"`
	Partitions        int      `json:"partitions"`
	ReplicationFactor int      `json:"replication_factor"`
	Detail            string   `json:"detail"`
	uses              []string // joined in Use
}

type topicsFlags struct {
	partitions  int32
	replicas    int16
	routing     string
	dryRun      bool
	as          format
	partsGiven  bool // --partitions was given, so another number is a difference
	copiesGiven bool // the same for --replication-factor
}

func (c *cli) topicsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Create the Kafka topics that the dispatcher reads and writes",
	}
	cmd.AddCommand(c.topicsCreateCommand())
	return cmd
}

func (c *cli) topicsCreateCommand() *cobra.Command {
	var f topicsFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create the topics that do not exist yet",
		Long: `Creates the topics of all lanes of the routing, and those for status events, dead
letters and inbound messages. The lanes are those of --routing, else of the routing in force, else
of DISPATCHER_ROUTING_FILE, else otp, transactional and bulk. An existing topic is never changed. If
it has other partitions or replicas than a flag asks for, its state is "differs", and the exit code
is 1.`,
		Example: `  dispatcher topics create --dry-run
  dispatcher topics create --partitions 24 --replication-factor 3`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		f.partsGiven = cmd.Flags().Changed("partitions")
		f.copiesGiven = cmd.Flags().Changed("replication-factor")
		return c.createTopics(ctx, &f)
	})
	flags := cmd.Flags()
	flags.Int32Var(&f.partitions, "partitions", defaultPartitions,
		"partitions of each new topic; a lane is read by at most as many processes as its topic "+
			"has partitions")
	flags.Int16Var(&f.replicas, "replication-factor", 0, "replicas of each partition (default 3, "+
		"or as many as there are brokers)")
	flags.StringVar(&f.routing, "routing", "",
		"routing document that names the lanes, instead of the one in force")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what is missing and what differs")
	f.as.addTo(flags)
	return cmd
}

func (c *cli) createTopics(ctx context.Context, f *topicsFlags) error {
	if f.partitions < 1 || f.copiesGiven && f.replicas < 1 {
		return usage(errors.New("--partitions and --replication-factor must be at least 1"))
	}
	s, err := c.settings(needKafka)
	if err != nil {
		return err
	}
	lanes, err := topicLanes(ctx, s, f.routing)
	if err != nil {
		return err
	}
	client, err := openKafka(ctx, s)
	if err != nil {
		return err
	}
	defer client.Close()
	states := wantedTopics(s, lanes)
	if err := f.create(ctx, s, kadm.NewClient(client), states); err != nil {
		return err
	}
	return c.printTopics(f, states)
}

// topicLanes are the lanes of a document, else of the routing in force or, before the first start,
// of the document that will be applied.
func topicLanes(ctx context.Context, s *config.Settings, file string) ([]config.Lane, error) {
	if file != "" {
		doc, err := readRouting("--routing", file)
		if err != nil {
			return nil, err
		}
		return doc.Lanes, nil
	}
	doc, err := knownRouting(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		return config.StandardLanes(), nil
	}
	return doc.Lanes, nil
}

// knownRouting is the routing in force or, if the database has none yet, that of
// DISPATCHER_ROUTING_FILE; nil without either.
func knownRouting(ctx context.Context, s *config.Settings) (*config.Routing, error) {
	if s.PostgresURL != "" {
		condition, err := inspect(ctx, s)
		if err != nil {
			return nil, usage(postgresTrouble(s, err))
		}
		if condition.Schema > 0 {
			l, err := openLedger(ctx, s, connect)
			if err != nil {
				return nil, err
			}
			defer l.Close()
			v, err := l.Routing.Current(ctx)
			switch {
			case err == nil:
				return control.StoredRouting(&v)
			case !errors.Is(err, ledger.ErrNoRouting):
				return nil, l.sentence(err)
			}
		}
	}
	if s.RoutingFile != "" {
		return readRouting("DISPATCHER_ROUTING_FILE", s.RoutingFile)
	}
	return nil, nil //nolint:nilnil // There is no routing, which is not an error here.
}

// wantedTopics lists each topic once, in the order in which messages pass them.
func wantedTopics(s *config.Settings, lanes []config.Lane) []topicState {
	var all []topicState
	add := func(topic, use string) {
		i := slices.IndexFunc(all, func(t topicState) bool { return t.Topic == topic })
		if i < 0 {
			all = append(all, topicState{Topic: topic})
			i = len(all) - 1
		}
		all[i].uses = append(all[i].uses, use)
		all[i].Use = strings.Join(all[i].uses, ", ")
	}
	for _, lane := range lanes {
		for _, topic := range lane.Topics {
			add(topic, "lane "+lane.Name)
		}
	}
	add(s.StatusTopic, "status")
	add(s.DeadTopic, "dead")
	add(s.InboundTopic, "inbound")
	if s.ControlTopic != "" {
		add(s.ControlTopic, "control")
	}
	return all
}

// create creates missing topics, unless this is a dry run, and fills in the brokers' answers.
func (f *topicsFlags) create(
	ctx context.Context, s *config.Settings, admin *kadm.Client, states []topicState,
) error {
	ctx, cancel := context.WithTimeout(ctx, 3*reachTimeout)
	defer cancel()
	replicas, err := f.replicasFor(ctx, admin)
	if err != nil {
		return usage(kafkaTrouble(s, err))
	}
	if err := f.compare(ctx, admin, states, replicas); err != nil {
		return usage(kafkaTrouble(s, err))
	}
	var missing []string
	for i := range states {
		if states[i].State == topicMissing {
			missing = append(missing, states[i].Topic)
		}
	}
	if f.dryRun || len(missing) == 0 {
		return nil
	}
	answers, err := admin.CreateTopics(ctx, f.partitions, replicas, nil, missing...)
	if err != nil {
		return usage(kafkaTrouble(s, err))
	}
	for i := range states {
		if answer, ok := answers[states[i].Topic]; ok {
			states[i].State, states[i].Detail = created(s, answer)
		}
	}
	return nil
}

// replicasFor is the replication factor of new topics.
func (f *topicsFlags) replicasFor(ctx context.Context, admin *kadm.Client) (int16, error) {
	if f.replicas > 0 {
		return f.replicas, nil
	}
	brokers, err := admin.ListBrokers(ctx)
	return int16(min(max(len(brokers), 1), defaultReplicas)), err
}

// compare says for each topic whether it exists as the flags ask for.
func (f *topicsFlags) compare(
	ctx context.Context, admin *kadm.Client, states []topicState, replicas int16,
) error {
	names := make([]string, len(states))
	for i := range states {
		names[i] = states[i].Topic
	}
	there, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return err
	}
	for i := range states {
		t, found := &states[i], there[states[i].Topic]
		switch {
		case errors.Is(found.Err, kerr.UnknownTopicOrPartition) || !there.Has(t.Topic) &&
			found.Err == nil:
			t.State = topicMissing
			t.Partitions, t.ReplicationFactor = int(f.partitions), int(replicas)
			continue
		case found.Err != nil:
			return found.Err
		}
		t.State = topicPresent
		t.Partitions, t.ReplicationFactor = len(found.Partitions), found.Partitions.NumReplicas()
		var wanted []string
		if f.partsGiven && t.Partitions != int(f.partitions) {
			wanted = append(wanted, fmt.Sprintf("--partitions is %d", f.partitions))
		}
		if f.copiesGiven && t.ReplicationFactor != int(f.replicas) {
			wanted = append(wanted, fmt.Sprintf("--replication-factor is %d", f.replicas))
		}
		if len(wanted) > 0 {
			t.State = topicDiffers
			t.Detail = strings.Join(wanted, ", ") +
				"; change the topic with your broker's own tools"
		}
	}
	return nil
}

// created is the result for one topic. Another process may have created it meanwhile.
func created(s *config.Settings, answer kadm.CreateTopicResponse) (state, detail string) {
	switch {
	case answer.Err == nil:
		return topicCreated, ""
	case errors.Is(answer.Err, kerr.TopicAlreadyExists):
		return topicPresent, "created by another process meanwhile"
	case errors.Is(answer.Err, kerr.InvalidReplicationFactor):
		return topicFailed, "the cluster has fewer brokers than --replication-factor: lower it"
	case errors.Is(answer.Err, kerr.TopicAuthorizationFailed), errors.Is(answer.Err,
		kerr.ClusterAuthorizationFailed):
		return topicFailed, fmt.Sprintf("user %q of DISPATCHER_KAFKA_SASL_USER may not create "+
			"topics: grant it CREATE", s.KafkaSASLUser)
	case answer.ErrMessage != "":
		return topicFailed, answer.ErrMessage
	}
	return topicFailed, answer.Err.Error()
}

func (c *cli) printTopics(f *topicsFlags, states []topicState) error {
	value := struct {
		Topics  []topicState `json:"topics"`
		DryRun  bool         `json:"dry_run"`
		Created int          `json:"created"`
		Failed  int          `json:"failed"`
		Differ  int          `json:"differ"`
	}{Topics: states, DryRun: f.dryRun}
	for i := range states {
		switch states[i].State {
		case topicCreated:
			value.Created++
		case topicFailed:
			value.Failed++
		case topicDiffers:
			value.Differ++
		}
	}
	rows := list(f.as, states, []column[topicState]{
		{key: "topic", width: 30},
		{key: "use", width: 24},
		{key: "state"},
		{key: "partitions"},
		{key: "replication_factor", head: "replication factor"},
		{key: "detail", width: 40},
	}...)
	if err := f.as.write(c.out, value, rows); err != nil {
		return err
	}
	switch {
	case value.Failed > 0:
		return failed(fmt.Errorf("%d of %d topics could not be created", value.Failed, len(states)))
	case value.Differ > 0:
		return failed(fmt.Errorf("%d of %d topics are not as the flags want them", value.Differ,
			len(states)))
	}
	return nil
}
