#!/usr/bin/env bash
# Kannel, Jasmin and the dispatcher in turn against one SMSC on this machine: how many messages a
# second each submits. Nothing leaves the machine.
#
#   deploy/bench/peers.sh                      # all, 200 000 messages each, 5 000 with Jasmin
#   deploy/bench/peers.sh --rounds 3           # three times in turn; the best rate of each counts
#   deploy/bench/peers.sh --messages 20000 dispatcher kannel
#
# The SMSC is "dispatcher sandbox": it accepts everything at once. Each has one SMPP bind and is fed
# while it sends, as in production:
#   dispatcher  "run --embedded", which has Kafka and PostgreSQL with it, both with fsync; fed by
#               kcat; a window of 200; limits of a second, a minute and a day that admit everything
#   receipts    the same, and the SMSC sends a receipt for each message, 0.2 seconds after its
#               answer; the rate is that until all are stored as delivered
#   kannel      bearerbox with a file store, which it never syncs; fed by mtbatch; a window of 200
#   jasmin      RabbitMQ and Redis with their packages' defaults; fed over its HTTP API
# The SMSC sends no receipts to the others. The rate is taken from when it has read a tenth of the
# messages until the last one. At the end a table has the best rate of each, and its ratio to
# those of Kannel and Jasmin.
#
# As root on Debian or Ubuntu it installs what is missing, with apt and pip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() {
  printf 'peers.sh: %s\n' "$*" >&2
  exit 1
}

messages=200000 rounds=1
while [[ ${1:-} == --* ]]; do
  case $1 in
    --messages) messages=${2:?--messages needs a number} ;;
    --rounds) rounds=${2:?--rounds needs a number} ;;
    *) fail "there is no option $1" ;;
  esac
  shift 2
done
[[ $messages =~ ^[1-9][0-9]{3,}$ ]] || fail "--messages must be a number of at least 1000"
[[ $rounds =~ ^[1-9][0-9]?$ ]] || fail "--rounds must be a number of at least 1"
all=(dispatcher receipts kannel jasmin)
peers=("$@")
(($# > 0)) || peers=("${all[@]}")
for peer in "${peers[@]}"; do
  [[ " ${all[*]} " == *" $peer "* ]] || fail "there is no peer $peer; there are ${all[*]}"
done

folder=$(mktemp -d /tmp/dispatcher-peers-XXXXXX)
chmod 755 "$folder"
started=() # process ids, in the order of their start

# stop ends what was started, the last one first.
stop() {
  local i
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  started=()
}
trap 'stop; rm -rf "$folder"' EXIT

have() { command -v "$1" >/dev/null; }

# need COMMAND PACKAGE... installs the packages when there is no such command.
need() {
  have "$1" && return
  { [[ $(id -u) == 0 ]] && have apt-get; } || fail "$1 is not installed: install ${*:2}"
  apt-get update -q >"$folder/apt.log" 2>&1 || true
  # No service is started: each peer runs in its own folder.
  printf '#!/bin/sh\nexit 101\n' >"$folder/policy" && chmod 755 "$folder/policy"
  POLICYRCD="$folder/policy" DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${@:2}" >>"$folder/apt.log" 2>&1 ||
    fail "apt could not install ${*:2}: $(tail -n 3 "$folder/apt.log")"
}

# start NAME COMMAND... runs a server whose output goes to a file of the folder.
start() {
  "${@:2}" >"$folder/$1.log" 2>&1 &
  started+=($!)
}

# until_true WHAT COMMAND... waits for up to a minute.
until_true() {
  local i
  for ((i = 0; i < 300; i++)); do
    "${@:2}" >/dev/null 2>&1 && return
    sleep 0.2
  done
  fail "$1 did not start; what it printed: $(tail -qn 5 "$folder"/*.log)"
}

smsc_answers() { curl -fsS "http://$status/status.json"; }

declare -A best # messages a second, by peer

# measure NAME COUNT N FEED... runs the feed and prints the rate of N messages. It counts from when
# the SMSC has read a tenth of them, until COUNT: "submitted", when it has read all, or "delivered",
# when the dispatcher has stored all as delivered.
measure() {
  local name=$1 count=$2 n=$3 rate
  "${@:4}" >"$folder/feed.log" 2>&1 &
  local feeder=$!
  rate=$(python3 - "$status" "$admin" "$count" "$n" <<'PY'
import re, sys, time, urllib.request
status, admin, count, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

def read(url):
    return urllib.request.urlopen("http://" + url, timeout=30).read().decode()

def submitted():
    return sum(map(int, re.findall(r'"submitted": *(\d+)', read(status + "/status.json"))))

def delivered():
    line = r'^dispatcher_receive_closed_total.*delivered.* (\S+)$'
    return sum(map(float, re.findall(line, read(admin + "/metrics"), re.M)))

counter = submitted if count == "submitted" else delivered
began, moved, last = None, time.monotonic(), 0
while True:
    now = time.monotonic()
    if began is None and (first := submitted()) >= n / 10:
        began = time.monotonic()
    seen = counter()
    if seen >= n:
        break
    if seen > last:
        last, moved = seen, now
    elif now - moved > 60:
        print("%d of %d messages" % (seen, n))
        sys.exit(1)
    time.sleep(0.05 if seen > 0.9 * n else 0.25)  # each read takes 1 ms of a processor
print(int((n - first) / (time.monotonic() - began)))
PY
  ) || fail "$name stopped at $rate: $(tail -qn 3 "$folder/feed.log" "$folder/$name.log")"
  wait "$feeder" || fail "$name: the feed failed: $(tail -n 3 "$folder/feed.log")"
  printf '%-12s %8d messages/s\n' "$name" "$rate"
  ((rate > ${best[$name]:-0})) && best[$name]=$rate
  return 0
}

password() { cat "$folder/secrets/smsc.password"; }

# The dispatcher.

# envelopes writes N lines for Kafka.
envelopes() {
  jq -cn --argjson n "$1" 'range($n) | tostring as $i | {
    id: ("peer-" + $i), to: ("+4477009" + ("00000" + $i)[-5:]), from: "BENCH",
    text: ($i + " is your code. It is valid for ten minutes.")}'
}

kafka_is_there() { [[ -s $folder/data/endpoints.json ]] && kcat -L -b "$kafka"; }

dispatcher_peer() { run_dispatcher dispatcher submitted; }

receipts_peer() { run_dispatcher receipts delivered; }

# run_dispatcher NAME COUNT
run_dispatcher() {
  local kafka=127.0.0.1:19092
  need kcat kcat
  envelopes "$messages" >"$folder/envelopes"
  rm -rf "$folder/data"
  DISPATCHER_DATA_DIR=$folder/data DISPATCHER_ROUTING_FILE=$folder/routing.yaml \
    DISPATCHER_SECRETS_DIR=$folder/secrets DISPATCHER_LISTEN=$admin \
    DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0 DISPATCHER_LOG_LEVEL=warn \
    start "$1" "$dispatcher" run --embedded --kafka-port "${kafka#*:}"
  until_true "$1" kafka_is_there
  measure "$1" "$2" "$messages" kcat -P -b "$kafka" -t sms.bulk -l "$folder/envelopes"
}

# Kannel.

bearerbox_listens() { (exec 3<>/dev/tcp/127.0.0.1/13001) 2>/dev/null; }

kannel_peer() {
  need bearerbox kannel
  need mtbatch kannel-extras
  cat >"$folder/kannel.conf" <<CONF
group = core
admin-port = 13000
admin-password = bench
admin-allow-ip = 127.0.0.1
smsbox-port = 13001
store-type = file
store-file = $folder/kannel.store
log-level = 3

group = smsc
smsc = smpp
host = ${smsc%:*}
port = ${smsc#*:}
smsc-username = sandbox
smsc-password = $(password)
system-type = "bench"
max-pending-submits = 200
transceiver-mode = true

group = smsbox
bearerbox-host = 127.0.0.1
CONF
  awk -v n="$messages" 'BEGIN { for (i = 0; i < n; i++) printf "4477009%05d\n", i % 100000 }' \
    >"$folder/receivers"
  echo -n '42 is your code. It is valid for ten minutes.' >"$folder/content"
  rm -f "$folder"/kannel.store*
  start kannel "$(command -v bearerbox)" "$folder/kannel.conf"
  until_true kannel bearerbox_listens
  sleep 2 # its bind
  measure kannel submitted "$messages" mtbatch -v 4 -b 127.0.0.1 -p 13001 -f BENCH \
    "$folder/content" "$folder/receivers"
}

# Jasmin.

rabbit() {
  HOME=$folder RABBITMQ_NODENAME=peers@localhost RABBITMQ_MNESIA_BASE=$folder/rabbit \
    RABBITMQ_LOG_BASE=$folder/rabbit RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=15672 \
    RABBITMQ_DIST_PORT=15673 RABBITMQ_PID_FILE=$folder/rabbit/pid \
    ERL_EPMD_ADDRESS=127.0.0.1 "$@"
}

# jasmin_setup makes a connector, a user and a route in Jasmin's console.
jasmin_setup() {
  "$folder/venv/bin/python" - "${smsc%:*}" "${smsc#*:}" "$(password)" <<'PY'
import socket, sys, time
host, port, password = sys.argv[1:]
console = socket.create_connection(("127.0.0.1", 8990), timeout=30)
seen = b""

def until(prompt):
    global seen
    while prompt not in seen:
        more = console.recv(4096)
        if not more:
            sys.exit("the console closed: %r" % seen)
        seen += more
    shown, seen = seen, b""
    if b"Error" in shown or b"nknown" in shown:
        sys.exit(shown.decode(errors="replace"))

def say(line, prompt):
    console.sendall(line.encode() + b"\r\n")
    until(prompt)

until(b"required.")
say("jcliadmin", b"Password:")
say("jclipwd", b"jcli : ")
connector = [
    "cid smsc", "host " + host, "port " + port, "username sandbox", "password " + password,
    "bind transceiver", "submit_throughput 0", "requeue_delay 2",
]
for command, answers in (
    ("smppccm -a", connector),
    ("group -a", ["gid bench"]),
    ("user -a", ["username bench", "password bench", "gid bench", "uid bench"]),
    ("mtrouter -a", ["type defaultroute", "connector smppc(smsc)", "rate 0"]),
):
    say(command, b"> ")
    for answer in answers:
        say(answer, b"> ")
    say("ok", b"jcli : ")
say("smppccm -1 smsc", b"jcli : ")
for _ in range(100):
    console.sendall(b"smppccm -s smsc\r\n")
    time.sleep(0.1)
PY
}

# jasmin_feed sends N messages over the HTTP API, with eight connections at a time.
jasmin_feed() {
  "$folder/venv/bin/python" - "$1" <<'PY'
import http.client, sys, threading, urllib.parse
total, threads, refused = int(sys.argv[1]), 8, []

def feed(first):
    connection = http.client.HTTPConnection("127.0.0.1", 1401, timeout=60)
    for n in range(first, total, threads):
        query = urllib.parse.urlencode({
            "username": "bench", "password": "bench", "to": "4477009%05d" % (n % 100000),
            "from": "BENCH", "content": "%d is your code. It is valid for ten minutes." % n})
        connection.request("GET", "/send?" + query)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            refused.append(body)
            return

workers = [threading.Thread(target=feed, args=(i,)) for i in range(threads)]
for w in workers: w.start()
for w in workers: w.join()
if refused:
    sys.exit("refused: %r" % refused[0])
PY
}

# install_jasmin makes its environment and its configuration, once.
install_jasmin() {
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install -q "jasmin==$jasmin_version" >"$folder/pip.log" 2>&1 ||
    fail "pip could not install Jasmin: $(tail -n 9 "$folder/pip.log")"
  # Its protocol file for AMQP and its configuration are in the source package alone.
  "$folder/venv/bin/pip" download -q --no-deps --no-binary jasmin -d "$folder" \
    "jasmin==$jasmin_version" >>"$folder/pip.log" 2>&1 ||
    fail "pip could not fetch Jasmin's source: $(tail -n 9 "$folder/pip.log")"
  tar -xzf "$folder/jasmin-$jasmin_version.tar.gz" -C "$folder"
  mkdir -p "$folder/etc/jasmin"
  cp -r "$folder/jasmin-$jasmin_version/misc/config/." "$folder/etc/jasmin/"
}

jasmin_peer() {
  local base=$folder/etc/jasmin
  need redis-server redis-server
  have rabbitmq-server || [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] ||
    need rabbitmq-server rabbitmq-server
  need epmd erlang-base
  python3 -c 'import ensurepip, venv' 2>/dev/null || need no-such-command python3-venv
  [[ -d $base ]] || install_jasmin
  rm -rf "$base/store" "$folder/rabbit" "$folder/redis"
  mkdir -p "$base/store" "$folder/var/log/jasmin" "$folder/var/run" "$folder/rabbit" "$folder/redis"
  start epmd epmd -address 127.0.0.1
  start redis redis-server --bind 127.0.0.1 --port 16379 --dir "$folder/redis"
  rabbit start rabbit /usr/lib/rabbitmq/bin/rabbitmq-server
  until_true rabbit rabbit /usr/lib/rabbitmq/bin/rabbitmqctl -n peers@localhost await_startup
  ROOT_PATH=$folder AMQP_BROKER_PORT=15672 REDIS_CLIENT_PORT=16379 \
    SMPP_SERVER_BIND=127.0.0.1 HTTP_API_BIND=127.0.0.1 JCLI_BIND=127.0.0.1 \
    start jasmin "$folder/venv/bin/jasmind.py" -u jcliadmin -p jclipwd
  until_true jasmin bash -c 'exec 3<>/dev/tcp/127.0.0.1/8990'
  jasmin_setup || fail "Jasmin's console: $(tail -n 3 "$folder/jasmin.log")"
  local n=$((messages < 5000 ? messages : 5000))
  measure jasmin submitted "$n" jasmin_feed "$n"
}

# The SMSC, and the peers in turn.

# start_smsc RECEIPTS starts the SMSC, which sends that part of the receipts.
start_smsc() {
  cat >"$folder/plan.yaml" <<YAML
carriers:
  - name: smsc
    provider: smpp
    address: "$smsc"
    profile: {receipts: $1, delivered: 1, receipt_delay: 0.2s, latency: 0s, jitter: 0s}
YAML
  rm -f "$folder/routing.yaml"
  start smsc "$dispatcher" sandbox --plan "$folder/plan.yaml" --listen "$status" \
    --secrets "$folder/secrets" --routing "$folder/routing.yaml"
  until_true smsc smsc_answers
  sed -i 's|^      system_id: .*|&\n      window: 200|' "$folder/routing.yaml"
  local window limits=()
  for window in 1s 1m 1d; do limits+=("{window: $window, max: 1000000000}"); done
  sed -i "s|^    provider: smpp|&\n    limits: [$(IFS=, && echo "${limits[*]}")]|" \
    "$folder/routing.yaml"
  [[ $1 != 0 ]] ||
    sed -i 's|^    provider: smpp|&\n    receipts: none|' "$folder/routing.yaml"
}

# part RATE OF is the ratio of two rates, or a dash.
part() {
  awk -v rate="$1" -v of="${2:-0}" 'BEGIN { if (of > 0) printf "%.2f", rate / of; else print "-" }'
}

# table prints the best rate of each, and its ratio to those of Kannel and Jasmin.
table() {
  local peer
  printf '\n%-12s %12s %10s %10s\n' '' messages/s 'by kannel' 'by jasmin'
  for peer in "${all[@]}"; do
    [[ -z ${best[$peer]:-} ]] || printf '%-12s %12d %10s %10s\n' "$peer" "${best[$peer]}" \
      "$(part "${best[$peer]}" "${best[kannel]:-}")" "$(part "${best[$peer]}" "${best[jasmin]:-}")"
  done
}

jasmin_version=0.11.1
status=127.0.0.1:18777 admin=127.0.0.1:18778
smsc=127.0.0.1:12775
need jq jq
need curl curl
need python3 python3
dispatcher=${DISPATCHER:-$folder/dispatcher}
[[ -n ${DISPATCHER:-} ]] || go build -o "$dispatcher" ./cmd/dispatcher
for ((round = 0; round < rounds; round++)); do
  for peer in "${peers[@]}"; do
    start_smsc "$([[ $peer == receipts ]] && echo 1 || echo 0)"
    "${peer}_peer"
    stop
  done
done
table
