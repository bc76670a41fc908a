#!/usr/bin/env python3
"""Derives the choices of a day again, from what export.sql wrote.

    replay.py [--keys draw.key] weights.csv choices.csv

It was written from docs/audit.md alone and shares nothing with the dispatcher, so that two programs
have to make the same mistake before a wrong choice looks right. Python 3.9 or later, nothing else.

Without --keys no draw is made again, but each must lie in the interval of the first choice.
The exit code is 0 when every choice is as it is on record, 1 when one differs, 2 for bad input.
"""

import argparse
import collections
import csv
import hashlib
import hmac
import itertools
import json
import string
import sys
import urllib.parse
from fractions import Fraction

SHOWN = 100  # differences that are printed; all are counted


class Route:
    """A route of one version: its members and their weights as whole numbers."""

    def __init__(self, rows):
        self.mode = rows[0]["mode"]
        self.fallback = rows[0]["fallback"]
        self.lowest_first = rows[0]["lowest_first"] == "t"
        self.sticky = rows[0]["sticky"] == "t"
        self.members = [row["channel"] for row in rows]  # in the order of place
        self.weights = None  # on a route without weights
        if all(row["weight"] for row in rows):
            weights = [Fraction(row["weight"]) for row in rows]
            scale = 1  # the smallest power of ten that makes every weight a whole number
            while any((weight * scale).denominator > 1 for weight in weights):
                scale *= 10
            self.weights = [int(weight * scale) for weight in weights]

    def draws(self):
        return self.mode == "weighted"

    def ranker(self, attempts):
        """The word for the order of the candidates after that many attempts."""
        if attempts > 0 or self.draws():
            return self.fallback
        return "load_ratio" if self.mode == "longest_idle" else self.mode


def pick(members, weights, draw):
    """The member whose interval holds the draw, intervals being laid end to end from 0."""
    for member, weight in zip(members, weights):
        if draw < weight:
            return member
        draw -= weight
    raise ValueError("the draw is beyond the last interval")


def draw(key, message, number, size):
    """The draw of a message with that number, from 0 to size - 1."""
    data = message.encode() + b"\0" + number.to_bytes(4, "big")
    digest = hmac.new(key, data, hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") * size >> 64


def sticky_draw(number_hmac, size):
    """The draw of all messages to one phone number, from 0 to size - 1."""
    return number_hmac % 2**64 * size >> 64


def redraw(route, key, message, first):
    """The members after the first choice, in the order of further draws."""
    left = [(m, w) for m, w in zip(route.members, route.weights) if m != first and w]
    order = []
    for number in itertools.count(2):
        if len(left) <= 1:
            break
        members, weights = zip(*left)
        drawn = pick(members, weights, draw(key, message, number, sum(weights)))
        order.append(drawn)
        left = [pair for pair in left if pair[0] != drawn]
    order += [member for member, _ in left]
    return order + [m for m in route.members if m != first and m not in order]


Candidate = collections.namedtuple("Candidate", "channel score active capacity last reason")


class Ranking:
    """The candidates in the order in which they were considered, and what the order depends on."""

    def __init__(self, text):
        stored = json.loads(text)
        self.version = str(stored["version"])
        self.by = stored["by"]
        self.after = stored.get("after")
        self.key_id = stored.get("key_id")
        self.trouble = stored.get("trouble", "")
        stateless = self.by in ("round_robin", "redraw", "order")
        scored = self.by == "best_worker"
        loaded = not stateless and not scored
        if stored.get("scoring") == "expression" or self.trouble == "expression_failed":
            loaded = True
        self.candidates = []
        score = capacity = None  # of the candidate before
        for text in filter(None, stored["line"].split(",")):
            words = iter(text.split(" "))
            channel, own, active, last = next(words), None, None, None
            if scored:
                word = next(words)
                if word not in ("=", "-"):
                    score = float(word)
                own = None if word == "-" else score
            if loaded:
                active, _, changed = next(words).partition("/")
                capacity = int(changed) if changed else capacity
            if not stateless:
                word = next(words)
                last = 0 if word == "-" else stored.get("latest", 0) - int(word)
            self.candidates.append(Candidate(
                urllib.parse.unquote(channel), own, active and int(active), capacity, last,
                urllib.parse.unquote(next(words, ""))))

    def chosen(self):
        """The first candidate without a reason for which it was passed over."""
        return next((c.channel for c in self.candidates if not c.reason), None)


class Replay:
    def __init__(self, routes, keys):
        self.routes = routes  # by version and name
        self.keys = keys      # by id; None when no draw is to be made again
        self.messages = self.attempts = self.found = 0
        self.unchecked = {}

    def differs(self, message, attempt, what, stored, derived):
        self.found += 1
        if self.found <= SHOWN:
            print(f"{message} attempt {attempt or '-'}: {what}: stored {stored}, derived {derived}")

    def not_checked(self, why):
        self.unchecked[why] = self.unchecked.get(why, 0) + 1

    def message(self, rows):
        """Derives the choices of one message; rows are its attempts in order."""
        self.messages += 1
        row = rows[0]
        route = self.routes.get((row["version"], row["route"]))
        if row["route"] == "":
            return  # it ended, or waits, before a route was found
        if route is None:
            self.differs(row["id"], 0, "version", row["version"], "one with route " + row["route"])
            return
        if route.draws():
            self.first_choice(row, route)
        if row["attempt"] == "":
            return
        for number, attempt in enumerate(rows, 1):
            self.attempts += 1
            if int(attempt["attempt"]) != number:
                self.differs(row["id"], attempt["attempt"], "attempt", attempt["attempt"], number)
            if attempt["ranking"]:
                self.ranked(attempt, number, Ranking(attempt["ranking"]))
            elif number > 1 or not route.draws():
                self.differs(row["id"], number, "ranking", "none", "one")
            elif attempt["channel"] != row["first_choice"]:
                self.differs(row["id"], number, "channel", attempt["channel"], row["first_choice"])

    def first_choice(self, row, route):
        size = sum(route.weights)
        if int(row["draw_size"]) != size:
            self.differs(row["id"], 0, "size", row["draw_size"], size)
            return
        if route.sticky:
            drawn = sticky_draw(int(row["number_hmac"]), size)
            if drawn != int(row["draw"]):
                self.differs(row["id"], 0, "draw", row["draw"], drawn)
                return
        elif self.keys is not None:
            key = self.keys.get(row["draw_key_id"])
            if key is None:
                self.differs(row["id"], 0, "draw_key", row["draw_key_id"], "a key of the file")
                return
            drawn = draw(key, row["id"], 1, size)
            if drawn != int(row["draw"]):
                self.differs(row["id"], 0, "draw", row["draw"], drawn)
                return
        if not 0 <= int(row["draw"]) < size:
            self.differs(row["id"], 0, "draw", row["draw"], f"one of 0 to {size - 1}")
            return
        picked = pick(route.members, route.weights, int(row["draw"]))
        if picked != row["first_choice"]:
            self.differs(row["id"], 0, "first_choice", row["first_choice"], picked)

    def ranked(self, row, number, ranking):
        """Derives the order of a stored ranking, and the channel that it leads to."""
        if row["channel"] != ranking.chosen():
            self.differs(row["id"], number, "channel", row["channel"], ranking.chosen())
        route = self.routes.get((ranking.version, row["route"]))
        if route is None:
            self.not_checked("rankings under a version that has no route of that name")
            return
        if ranking.by != route.ranker(number - 1):
            self.differs(row["id"], number, "ranked_by", ranking.by, route.ranker(number - 1))
            return
        stored, others = [c.channel for c in ranking.candidates], ranking.candidates
        front = []
        if route.draws():  # the first choice stands at the front, whatever orders the others
            front, others = [row["first_choice"]], others[1:]
        order = self.order(row, route, ranking, front, others)
        if order is None:
            self.not_checked("orders by redraw, without keys")
        elif stored != (front + order)[:len(stored)]:
            self.differs(row["id"], number, "order", " ".join(stored),
                         " ".join((front + order)[:len(stored)]))

    def order(self, row, route, ranking, front, others):
        """The channels behind the first choice, in order; None when no key is at hand."""
        first = front[0] if front else None
        if ranking.by == "round_robin":
            if not -1 <= ranking.after < len(route.members):
                return [f"no member at place {ranking.after}"]
            turn = route.members[ranking.after + 1:] + route.members[:ranking.after + 1]
            return [member for member in turn if member != first]
        if ranking.by == "order":
            return [member for member in route.members if member != first]
        if ranking.by == "redraw":
            if self.keys is None:
                return None
            if ranking.key_id not in self.keys:
                return ["no key " + ranking.key_id]
            return redraw(route, self.keys[ranking.key_id], row["id"], first)
        unknown = [c.channel for c in others if c.channel not in route.members]
        if unknown:
            return ["no member " + unknown[0]]
        place = route.members.index
        if ranking.by == "best_worker":
            lowest_first = route.lowest_first and not ranking.trouble
            sign = 1 if lowest_first else -1
            ordered = sorted(others, key=lambda c: (sign * c.score, c.last, place(c.channel)))
        else:
            ordered = sorted(others, key=lambda c: (
                Fraction(c.active, c.capacity), c.last, place(c.channel)))
        return [c.channel for c in ordered]


def read_keys(path):
    """The keys of a file by their ids. A line is a key, empty, or begins with #."""
    keys = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(map(str.strip, file), 1):
            if not line or line.startswith("#"):
                continue
            if len(line) != 64 or not all(c in string.hexdigits for c in line):
                raise ValueError(f"{path}, line {number}: a key is 64 hexadecimal digits")
            key = bytes.fromhex(line)
            keys[hashlib.sha256(key).hexdigest()[:8]] = key
    return keys


def read_routes(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    routes = {}
    for row in sorted(rows, key=lambda row: int(row["place"])):
        routes.setdefault((row["version"], row["route"]), []).append(row)
    return {name: Route(members) for name, members in routes.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", help="file with the draw keys")
    parser.add_argument("weights")
    parser.add_argument("choices")
    args = parser.parse_args()
    try:
        replay = Replay(read_routes(args.weights), read_keys(args.keys) if args.keys else None)
        with open(args.choices, encoding="utf-8", newline="") as file:
            for _, rows in itertools.groupby(csv.DictReader(file), key=lambda row: row["seq"]):
                replay.message(list(rows))
    except (OSError, ValueError, KeyError, StopIteration) as err:
        print(f"replay.py: {err}", file=sys.stderr)
        return 2
    for why, count in replay.unchecked.items():
        print(f"not checked: {count} {why}")
    result = f"{replay.found} differ" if replay.found else "every choice is as it is on record"
    print(f"{replay.messages} messages and {replay.attempts} attempts derived again; {result}")
    return 1 if replay.found else 0


if __name__ == "__main__":
    sys.exit(main())
