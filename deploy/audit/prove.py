#!/usr/bin/env python3
"""Checks the proof of a message, from "dispatcher audit proof ID --format json", and prints it.

    prove.py --key seal.pub [proof.json]

seal.pub has the verifier key of the log as its last line. The program needs no database and shares
nothing with the dispatcher. It was written from docs/evidence.md alone. Python 3.9 or later,
nothing else.

The exit code is 0 when the log has what is printed, 1 when it has not, 2 for bad input.
"""

import argparse
import base64
import datetime
import hashlib
import json
import sys

PARTS = {  # the names of what stands in each text, in order; _at are microseconds since 1970
    "intake": ["id", "lane", "tenant", "topic", "partition", "offset", "received_at", "calling_code",
               "number_hmac", "envelope_hmac", "sender"],
    "plan": ["route", "routing_version", "draw", "draw_size", "draw_key_id", "first_choice",
             "segments", "alphabet"],
    "attempts": ["attempt", "channel", "reason", "segments", "price_micros", "currency", "ranking",
                 "claimed_at", "ticket_at", "leaves_at", "settled_at", "outcome",
                 "provider_reference", "provider_code", "unfit"],
    "later": ["state", "reason", "possible_duplicate", "finished_at", "receipts", "ambiguous",
              "receipts_of_parts", "detail"],
}
STATES = ["", "open", "accepted", "delivered", "undelivered", "no_receipt", "rejected", "failed",
          "unknown", "dead"]


# Ed25519 of RFC 8032: points of the curve are (X, Y, Z, T) with x = X/Z, y = Y/Z, x*y = T/Z.
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, PRIME) % PRIME


def point_add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % PRIME, (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c, d = 2 * p[3] * q[3] * CURVE % PRIME, 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def point_times(factor, p):
    total = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            total = point_add(total, p)
        p, factor = point_add(p, p), factor >> 1
    return total


def point(data):
    y, sign = int.from_bytes(data, "little") & (1 << 255) - 1, data[31] >> 7
    if y >= PRIME:
        raise ValueError("a point of the signature is not on the curve")
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if x * x % PRIME != square:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    if x * x % PRIME != square:
        raise ValueError("a point of the signature is not on the curve")
    if x & 1 != sign:
        x = PRIME - x
    return (x, y, 1, x * y % PRIME)


BASE = point((4 * pow(5, -1, PRIME) % PRIME).to_bytes(32, "little"))


def signed(public, message, signature):
    """Whether the signature of the message was made with the private key of public."""
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    left = point_times(s, BASE)
    right = point_add(point(signature[:32]),
                      point_times(int.from_bytes(digest, "little") % ORDER, point(public)))
    return all((left[i] * right[2] - right[i] * left[2]) % PRIME == 0 for i in (0, 1))


def open_checkpoint(checkpoint, key):
    """The name, the size and the root of a signed note, or None if the key has not signed it."""
    name, key_hash, encoded = key.split("+", 2)
    public = base64.b64decode(encoded)
    if public[0] != 1 or len(public) != 33:
        raise ValueError("the key is not one of Ed25519")
    text, _, signatures = checkpoint.partition("\n\n")
    text += "\n"
    for line in signatures.splitlines():
        dash, _, rest = line.partition(" ")
        signer, _, signature = rest.rpartition(" ")
        data = base64.b64decode(signature)
        if dash == "—" and signer == name and data[:4].hex() == key_hash and \
                signed(public[1:], text.encode(), data[4:]):
            lines = text.split("\n")
            return lines[0], int(lines[1]), base64.b64decode(lines[2])
    return None


def root_of(leaf, index, size, hashes):
    """The root that an inclusion proof of RFC 6962, section 2.1.1, leads to; None if it is none."""
    result = hashlib.sha256(b"\0" + leaf).digest()
    last = size - 1
    for other in hashes:
        if last == 0:
            return None
        if index & 1 or index == last:
            result = hashlib.sha256(b"\1" + other + result).digest()
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            result = hashlib.sha256(b"\1" + result + other).digest()
        index, last = index >> 1, last >> 1
    return result if last == 0 else None


def shown(name, value):
    if name.endswith("_at") and value is not None:
        seconds, micros = divmod(value, 1_000_000)
        at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        return f"{at:%Y-%m-%d %H:%M:%S}.{micros:06} UTC"
    return json.dumps(value, ensure_ascii=False)


def show(part, text):
    values = json.loads(text)
    for row in values if part == "attempts" else [values]:
        print(f"{part}:")
        for name, value in zip(PARTS[part], row):
            print(f"  {name}: {shown(name, value)}")


def check(proof, key):
    """Prints what the proof proves. False if it proves nothing."""
    opened = open_checkpoint(proof["checkpoint"], key)
    if opened is None:
        print("the key has not signed this checkpoint")
        return False
    name, size, root = opened
    leaf = base64.b64decode(proof["leaf"])
    hashes = [base64.b64decode(one) for one in proof["hashes"]]
    if not 0 <= proof["index"] < size or root_of(leaf, proof["index"], size, hashes) != root:
        print("the log does not have this leaf")
        return False
    if len(leaf) != 74 or int.from_bytes(leaf[:8], "big", signed=True) < 0:
        raise ValueError("the leaf is not that of a message")
    print(f"signed by {name}: leaf {proof['index']} of {size}, a message in state {STATES[leaf[8]]}")
    good = True
    for number, part in enumerate(PARTS):
        sealed = leaf[10 + 16 * number:26 + 16 * number]
        text = proof.get("texts", {}).get(part)
        if text is None:
            if any(sealed):
                print(f"{part}: the log has a hash of it, and the proof has no text")
        elif hashlib.sha256(text.encode()).digest()[:16] == sealed:
            show(part, text)
        else:
            print(f"{part}: the text is not the one in the log")
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", required=True, help="file with the verifier key")
    parser.add_argument("proof", nargs="?", help="file (default standard input)")
    args = parser.parse_args()
    try:
        with open(args.key, encoding="utf-8") as file:
            key = file.read().split()[-1]
        with open(args.proof or 0, encoding="utf-8") as file:
            proof = json.load(file)
        return 0 if check(proof, key) else 1
    except (OSError, ValueError, KeyError, IndexError) as err:
        print(f"prove.py: {err!r}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
