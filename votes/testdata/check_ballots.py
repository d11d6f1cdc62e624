"""Checks a bundle of motion ballots with nothing of this project: the CBOR of
cbor2, the signatures of cryptography (OpenSSL), RFC 9052 and docs/ballots.md.

usage: check_ballots.py BUNDLE KEYS

KEYS has a line "voter-id scheme public-key" for each voter, in hexadecimal. A
line is printed for each ballot: the voter, the choice and the verdict.
"""
import hashlib
import io
import sys

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ALGORITHMS = {"ed25519": -8, "ed448": -8, "ml-dsa-65": -49}
CURVES = {"ed25519": Ed25519PublicKey, "ed448": Ed448PublicKey}


def check(message, keys):
    assert message.tag == 18, "not a COSE_Sign1"
    protected, unprotected, payload, signature = message.value
    header = cbor2.loads(protected)
    form, network, scope, motion, choice, voter, comment_hash = cbor2.loads(payload)
    assert form == 1 and header[4] == voter
    assert header[3] == "application/vnd.aweigh.motion-ballot+cbor"
    scheme, public = keys[voter.hex()]
    assert header[1] == ALGORITHMS[scheme]
    verdict = "unknown algorithm"
    if scheme in CURVES:
        signed = cbor2.dumps(["Signature1", protected, b"", payload])
        try:
            CURVES[scheme].from_public_bytes(public).verify(signature, signed)
            verdict = "good"
        except InvalidSignature:
            verdict = "bad"
    if header.get("offline"):
        verdict += " offline"
    if "comment" in unprotected:
        assert hashlib.sha256(unprotected["comment"].encode()).digest() == comment_hash
        verdict += " " + unprotected["comment"]
    return "%s %s %s" % (voter.hex(), {1: "approve", 2: "reject"}[choice], verdict)


def main():
    keys = {}
    for line in open(sys.argv[2]):
        voter, scheme, public = line.split()
        keys[voter] = scheme, bytes.fromhex(public)
    bundle = open(sys.argv[1], "rb").read()
    reader = io.BytesIO(bundle)
    while reader.tell() < len(bundle):
        print(check(cbor2.load(reader), keys))


main()
