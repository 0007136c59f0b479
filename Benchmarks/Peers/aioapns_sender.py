"""aioapns as a sender of pushes: one connection, STREAMS tasks.

usage: aioapns_sender.py HOST PORT COUNT STREAMS   (prints how many replies were 200)
"""

import asyncio
import secrets
import ssl
import sys

from aioapns import APNs, NotificationRequest
from aioapns.connection import APNsBaseConnectionPool
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


async def main(host: str, port: int, count: int, streams: int) -> int:
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    apns = APNs(
        key=key.decode(),
        key_id="ABC123DEFG",
        team_id="DEF123GHIJ",
        topic="com.example.app",
        max_connections=1,
        ssl_context=context,
    )
    # The one thing that is not as shipped: where it connects to.
    apns.pool.protocol_class.APNS_SERVER = host
    apns.pool.protocol_class.APNS_PORT = port
    assert isinstance(apns.pool, APNsBaseConnectionPool)
    left = count
    accepted = 0

    async def worker() -> None:
        nonlocal left, accepted
        while left > 0:
            left -= 1
            result = await apns.send_notification(
                NotificationRequest(
                    device_token=secrets.token_hex(32),
                    message={"aps": {"alert": "Hello from Postman!"}},
                )
            )
            accepted += result.is_successful

    await asyncio.gather(*(worker() for _ in range(streams)))
    print(accepted)
    return 0 if accepted == count else 1


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    host, *numbers = sys.argv[1:]
    sys.exit(asyncio.run(main(host, *map(int, numbers))))
