import base64
import sys

from receiver import is_genuine

for line in sys.stdin:
    secret, timestamp, nonce, signature, body, now = line.rstrip("\n").split("\t")
    print("genuine" if is_genuine(secret, timestamp, nonce, signature, base64.b64decode(body), float(now)) else "refused")
