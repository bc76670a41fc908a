#!/usr/bin/env python3
"""Records testdata/incident.txt: what a dispatcher shows while first one and then all of its
carriers are away. It takes 18 minutes, and a machine that does nothing else.

    go build -o /tmp/dispatcher ./cmd/dispatcher && .ci/deploy/record.py /tmp/dispatcher

Everything is real: a dispatcher with PostgreSQL and Kafka of its own, two carriers of "dispatcher
sandbox" in processes of their own, a receiver of status webhooks, and four messages a second over
the HTTP API. The series are those that the alert rules and the boards name; monitoring_test.go says
which of them this incident cannot have.
"""
import glob
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

FOLDER = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(FOLDER, "..", "..", "deploy")
RULES = os.path.join(DEPLOY, "prometheus", "alerts.yml")
BOARDS = os.path.join(DEPLOY, "grafana", "dashboards", "*.json")
TARGET = os.path.join(FOLDER, "testdata", "incident.txt")

EVERY, SAMPLES = 15, 72
# In seconds from the first sample. TestAlertsOfARecordedIncident has the same.
PREMIUM_AWAY, POISON, ALL_AWAY, BACK = 180, 295, 540, 780

ROUTING = """
channels:
  premium:
    provider: twilio
    settings:
      account_sid: AC00000000000000000000000000000000
      allow_private: true
      api_key_secret_file: premium.api_key_secret
      api_key_sid: SK00000000000000000000000000000000
      auth_token_file: [premium.auth_token]
      base_url: http://127.0.0.1:{premium}
      from: "+15550100100"
    price: {{currency: EUR, default: "0.03"}}
    contract: {{cap: 1000000}}
    limits: [{{window: 1s, max: 200}}]
  cheap:
    provider: sinch
    settings:
      allow_private: true
      base_url: http://127.0.0.1:{cheap}
      callback_secret_files: [cheap.callback_secret]
      from: Sandbox
      service_plan_id: sandbox-plan
      token_file: cheap.token
    price: {{currency: EUR, default: "0.02"}}
    limits: [{{window: 1d, max: 100000}}]
limits:
  - {{window: prepaid, unit: money, currency: EUR, tenant: "*"}}
guards:
  - {{per: tenant, times: 1000, at_least: 1000000, action: warn}}
routes:
  - {{name: default, weights: {{premium: 60, cheap: 40}}, fallback: load_ratio}}
lanes:
  otp: {{topics: [sms.otp], ttl: 10m, ambiguous: resend_once}}
  transactional: {{topics: [sms.transactional], ttl: 1h, ambiguous: resend_once}}
  bulk: {{topics: [sms.bulk], ttl: 24h, ambiguous: resend_once}}
"""

PLAN = """
profile: {{latency: 30ms, jitter: 40ms, receipt_delay: 500ms, delivered: 0.97}}
carriers:
  - {{name: {name}, provider: {kind}, address: "127.0.0.1:{port}"}}
"""

WEBHOOKS = """
webhooks:
  - {{name: shop, url: "http://127.0.0.1:{port}/", secret_files: [shop.whsec], allow_private: true}}
"""


def free_port():
    """A port of loopback that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes status events."""

    def do_POST(self):  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Rig:
    """The processes of the recording, and where they listen."""

    def __init__(self, program, folder):
        self.program, self.folder, self.running = program, folder, {}
        self.ports = {n: free_port() for n in ("admin", "receipts", "premium", "cheap")}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.secrets = self.path("secrets")
        os.mkdir(self.secrets, 0o700)
        self.write("secrets/shop.whsec", "whsec_" + "QUFB" * 8 + "\n")
        self.write("webhooks.yaml", WEBHOOKS.format(port=self.server.server_address[1]))
        self.write("routing.yaml", ROUTING.format(**self.ports))
        self.url = f"http://127.0.0.1:{self.ports['admin']}"
        self.env = {
            "PATH": os.environ["PATH"], "HOME": folder,
            "DISPATCHER_DATA_DIR": self.path("data"),
            "DISPATCHER_SECRETS_DIR": self.secrets,
            "DISPATCHER_ROUTING_FILE": self.path("routing.yaml"),
            "DISPATCHER_LISTEN": f"127.0.0.1:{self.ports['admin']}",
            "DISPATCHER_RECEIPTS_LISTEN": f"127.0.0.1:{self.ports['receipts']}",
            "DISPATCHER_STATUS_WEBHOOKS_FILE": self.path("webhooks.yaml"),
            "DISPATCHER_API_INTAKE": "true",
        }

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(text)

    def start(self, name, *args):
        log = open(self.path(name + ".log"), "ab")
        self.running[name] = subprocess.Popen(
            [self.program, *args], env=self.env, cwd=self.folder, stdout=log, stderr=log,
            start_new_session=True)  # a group of its own, for stop

    def carrier(self, name):
        """Starts a carrier. It has the account of before, at the address of before."""
        kind = {"premium": "twilio", "cheap": "sinch"}[name]
        self.write(f"{name}.yaml", PLAN.format(name=name, kind=kind, port=self.ports[name]))
        self.start(name, "sandbox", "--plan", self.path(f"{name}.yaml"), "--format", "json")

    def kill(self, name):
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self):
        """Asks every process to stop, and kills what is left of its group after a minute, or when
        the recording is interrupted once more."""
        processes = list(self.running.values())
        try:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(60)
        except subprocess.TimeoutExpired:
            print("killing what does not stop", file=sys.stderr)
        finally:
            for process in processes:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # nothing is left
                process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as response:
            return response.read().decode()

    def send(self, lane, name, text="Your code is 123456"):
        with open(self.path("data/api.token")) as f:
            token = f.read().strip()
        body = {"lane": lane, "messages": [{"id": name, "to": "+447700900123", "text": text}]}
        request = urllib.request.Request(
            self.url + "/api/v1/messages", json.dumps(body).encode(),
            {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).read()

    def ready(self):
        for _ in range(600):
            try:
                self.get("/readyz")
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        sys.exit("the dispatcher is not ready: see " + self.path("dispatcher.log"))


def named():
    """The series that the rules and the boards name, without those of Prometheus."""
    with open(RULES) as f:
        text = re.sub(r"(?m)^\s*(#|summary:|runbook_url:).*$", "", f.read())
    for path in glob.glob(BOARDS):
        with open(path) as f:
            text += "\n".join(target["expr"] for panel in json.load(f)["panels"]
                              for target in panel["targets"])
    return set(re.findall(r"\b(?:dispatcher|process|go)_\w+", text))


def samples(text, names):
    """The values of one scrape by series."""
    out = {}
    for line in text.splitlines():
        found = re.match(r"(\w+)(?:\{(.*)\})? (\S+)$", line)
        if found and found[1] in names:
            out[found[1] + "{" + (found[2] + "," if found[2] else "")
                + 'job="dispatcher",instance="a"}'] = found[3]
    return out


def notation(values):
    """Values as promqltest reads them: VxN is N repetitions after the first, _ is none."""
    out, at = [], 0
    while at < len(values):
        end = at
        while end + 1 < len(values) and values[end + 1] == values[at]:
            end += 1
        count, value = end - at + 1, values[at]
        if value == "_":
            out.append(f"_x{count}" if count > 1 else "_")
        else:
            value = repr(float(value)).removesuffix(".0")
            out.append(f"{value}x{count - 1}" if count > 1 else value)
        at = end + 1
    return " ".join(out)


def traffic(rig, begin, ended):
    """Four messages a second, over the lanes in turn."""
    n = 0
    while not ended.is_set():
        wait = begin + n / 4 - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        lane = ("otp", "transactional", "bulk")[n % 3]
        try:
            rig.send(lane, f"m-{n}")
        except OSError as e:
            print(f"message {n}: {e}", file=sys.stderr)
        n += 1


def record(rig):
    begin = time.monotonic()
    ended = threading.Event()
    threading.Thread(target=traffic, args=(rig, begin, ended), daemon=True).start()
    steps = [
        (PREMIUM_AWAY, lambda: rig.kill("premium")),
        # Other messages with an id that is taken: none of them is usable.
        (POISON, lambda: [rig.send("bulk", "m-2", f"other text {n}") for n in range(5)]),
        (ALL_AWAY, lambda: rig.kill("cheap")),
        (BACK, lambda: [rig.carrier("premium"), rig.carrier("cheap")]),
    ]
    names, series = named(), {}
    for n in range(SAMPLES):
        at = (n + 1) * EVERY  # the first sample shows what happened in its first interval
        while steps and steps[0][0] + EVERY <= at:
            when, do = steps.pop(0)
            time.sleep(max(begin + EVERY + when - time.monotonic(), 0))
            do()
            print(f"{when} s: done", file=sys.stderr)
        time.sleep(max(begin + at - time.monotonic(), 0))
        for name, value in samples(rig.get("/metrics"), names).items():
            series.setdefault(name, ["_"] * n).append(value)
        for values in series.values():
            if len(values) == n:
                values.append("_")
    ended.set()
    return names, series


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = tempfile.mkdtemp(prefix="incident-")
    os.chmod(folder, 0o755)  # as root, PostgreSQL runs as another user
    rig = Rig(os.path.abspath(sys.argv[1]), folder)
    try:
        for name in ("premium", "cheap"):
            rig.carrier(name)
        rig.start("dispatcher", "run", "--embedded")
        rig.ready()
        subprocess.run([rig.program, "budget", "top-up", "--all-channels", "--tenant", "shop",
                        "--amount", "1000", "--reason", "recording"], env=rig.env, cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        names, series = record(rig)
    finally:
        rig.stop()
    with open(TARGET, "w") as f:
        f.write(f"load {EVERY}s\n")
        for name in sorted(series):
            f.write(f"  {name} {notation(series[name])}\n")
    missing = names - {name.split("{")[0] for name in series}
    print("not in the recording:", ", ".join(sorted(missing)) or "none", file=sys.stderr)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
