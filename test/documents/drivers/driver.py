import base64
import sys

from receiver import refusal

seen: set[str] = set()
for line in sys.stdin:
    secret, now, headers, body = line.rstrip("\n").split("\t")
    lines = base64.b64decode(headers).decode().splitlines()
    given = dict(one.split(": ", 1) for one in lines)
    print(refusal(secret, given, base64.b64decode(body), float(now), seen) or "genuine")
