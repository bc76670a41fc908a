#!/usr/bin/env bash
# Runs one real Apache Kafka broker (KRaft) for the end-to-end test. Needs Java 17 and,
# for fetch, Maven.
#
#   kafka.sh fetch   DIR         copy the broker's jars into DIR/libs
#   kafka.sh start   DIR [PORT]  fetch and format when that was not done yet, start, wait until ready
#   kafka.sh stop    DIR         stop in an orderly way
#   kafka.sh kill    DIR         stop with SIGKILL, as a power cut would
#   kafka.sh restart DIR         start again over the same data, on the same port
#
# PORT is the clients' (default 9092), PORT + 1 the controller's, both on 127.0.0.1. Data,
# configuration, log and process id stay under DIR. Exit 0 ok, 1 failed, 2 wrong usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
timeout=180 # seconds until ready or stopped; after a kill on a busy machine a JVM takes a minute

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

fail() {
  printf 'kafka.sh: %s\n' "$*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || fail "$1 is not installed: $2"
}

# The jars are complete once libs exists: they are copied beside it first.
fetch() {
  [[ -d $dir/libs ]] && return
  need mvn "install Maven 3.8 or later"
  rm -rf "$dir/libs.part"
  mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies \
    "-DoutputDirectory=$dir/libs.part" >"$dir/fetch.log" 2>&1 || {
    cat "$dir/fetch.log" >&2
    fail "Maven could not fetch the broker"
  }
  mv "$dir/libs.part" "$dir/libs"
}

configure() {
  local port=$1
  ((port > 0 && port < 65535)) || fail "$port is not a port"
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=CLIENT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=CLIENT://127.0.0.1:$port
inter.broker.listener.name=CLIENT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
num.partitions=12
auto.create.topics.enable=true
# One node holds every replica.
default.replication.factor=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# After SIGKILL the broker waits until its own old registration has expired: 6 s with
# these two in place of 12 to 17 s.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
PROPERTIES
  cat >"$dir/log4j2.properties" <<'LOGGING'
status=error
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1} %m%n
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
LOGGING
  printf '%s\n' "$port" >"$dir/port"
}

format() {
  [[ -f $dir/data/meta.properties ]] && return
  java -cp "$dir/libs/*" "-Dlog4j2.configurationFile=$dir/log4j2.properties" \
    kafka.tools.StorageTool format --cluster-id ZGlzcGF0Y2hlci1jaQAAAA \
    --config "$dir/server.properties" >"$dir/format.log" 2>&1 ||
    fail "cannot format $dir/data: $(tail -n 1 "$dir/format.log")"
}

# The process id, if that process is alive and a broker of this folder: after a reboot
# the number may belong to another process.
running() {
  local pid
  pid=$(cat "$dir/pid" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$dir/server.properties" || return 1
  printf '%s\n' "$pid"
}

listening() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

launch() {
  local port pid
  port=$(cat "$dir/port" 2>/dev/null) || fail "no broker was ever started in $dir"
  running >/dev/null && fail "a broker already runs in $dir"
  listening "$port" && fail "port $port is taken: stop what listens there or choose another"
  : >"$dir/broker.log"
  setsid java -Xmx512m -cp "$dir/libs/*" "-Dlog4j2.configurationFile=$dir/log4j2.properties" \
    kafka.Kafka "$dir/server.properties" >>"$dir/broker.log" 2>&1 </dev/null &
  pid=$!
  printf '%s\n' "$pid" >"$dir/pid"
  await_ready "$port"
}

await_ready() {
  local port=$1 deadline=$((SECONDS + timeout))
  until grep -q 'Kafka Server started' "$dir/broker.log" && listening "$port"; do
    if ! kill -0 "$(cat "$dir/pid")" 2>/dev/null; then
      tail -n 20 "$dir/broker.log" >&2
      fail "the broker ended while it started; see $dir/broker.log"
    fi
    ((SECONDS < deadline)) || fail "not ready after $timeout s; see $dir/broker.log"
    sleep 0.1
  done
  printf 'Kafka is ready on 127.0.0.1:%s\n' "$port"
}

# A dying process loses its command line first and its ports last; and where nobody reaps
# orphans, as in some containers, its number stays for ever.
ended() {
  ! running >/dev/null && ! listening "$port" && ! listening $((port + 1))
}

end() {
  local signal=$1 pid port deadline=$((SECONDS + timeout))
  if ! pid=$(running); then
    printf 'no broker runs in %s\n' "$dir"
    return
  fi
  port=$(cat "$dir/port")
  kill "-$signal" "$pid"
  until ended; do
    ((SECONDS < deadline)) || fail "process $pid has not ended after $timeout s"
    sleep 0.1
  done
  rm -f "$dir/pid"
}

[[ $# -ge 2 && $# -le 3 ]] || usage
command=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
case $command in
fetch) fetch ;;
start)
  need java "install a Java 17 runtime"
  fetch
  configure "${3:-9092}"
  format
  launch
  ;;
stop) end TERM ;;
kill) end KILL ;;
restart)
  end TERM
  launch
  ;;
*) usage ;;
esac
