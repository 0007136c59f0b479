"""Clients that know no proxy, where the names of push services lead to this machine.

test_proxy.py runs this with a network and a mount table of its own (unshare), so that port 443 is free and
/etc/hosts can be another. It prints what the clients were answered and what the phones got.
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import firebase_admin
from aioapns import APNs, NotificationRequest
from firebase_admin import messaging

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from support.emulator import Emulator  # noqa: E402
from support.process import Belfry  # noqa: E402

HOSTS = [
    "localhost", "fcm.googleapis.com", "oauth2.googleapis.com", "api.push.apple.com",
    "api.development.push.apple.com",
]


def lead_names_here():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.NamedTemporaryFile("w", suffix="-hosts") as file:
        file.write("127.0.0.1 " + " ".join(HOSTS) + "\n")
        file.flush()
        os.chmod(file.name, 0o644)
        subprocess.run(["mount", "--bind", file.name, "/etc/hosts"], check=True)


async def push(emulator, environment):
    topic = f"com.example.{environment}"
    app = emulator.make_app("apns", bundleId=topic)
    phone = emulator.make_device(app, environment=environment)
    client = APNs(
        key=app["keys"][0]["privateKeyPem"], key_id=app["keys"][0]["kid"], team_id=app["teamId"],
        topic=topic, use_sandbox=environment == "sandbox",
    )
    request = NotificationRequest(
        device_token=phone["handle"]["token"], message={"aps": {"alert": environment}}
    )
    result = await client.send_notification(request)
    client.pool.close()
    return [result.is_successful, len(emulator.notifications(phone))]


async def multicast(emulator):
    app = emulator.make_app("fcm", projectId="by-hosts-file")
    phone = emulator.make_device(app)
    account = {**app["serviceAccount"], "token_uri": "https://oauth2.googleapis.com/token"}
    client = firebase_admin.initialize_app(firebase_admin.credentials.Certificate(account))
    messages = [
        messaging.Message(token=phone["handle"]["token"], data={"n": str(n)}) for n in range(500)
    ]
    batch = await messaging.send_each_async(messages, app=client)
    return [batch.success_count, len(emulator.notifications(phone))]


def main():
    lead_names_here()
    process = Belfry("emulator", "--port", "0", "--proxy", "443")
    os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = process.addresses["ca"]
    emulator = Emulator(process.addresses["control"])
    results = {
        name: asyncio.run(push(emulator, name)) for name in ("production", "sandbox")
    }
    results["firebase-admin"] = asyncio.run(multicast(emulator))
    process.stop()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
