"""An HTTP/2 server on `h2`, whose every move the tests choose: the other end of Belfry's gateways.

A behaviour is a function of a `Peer`, one connection, that runs on a thread of its own; the
connection ends when it returns. What it raises is kept in `errors`, except that Belfry went.
"""

import dataclasses
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack


@dataclasses.dataclass
class Request:
    """A request whose body is complete."""

    stream: int
    headers: dict
    body: bytes
    connection: int
    #: Names of the fields that are kept out of every table of HPACK.
    unindexed: set

    @property
    def path(self):
        return self.headers[":path"]


class Gone(Exception):
    """Belfry has ended the connection."""


class Peer:
    """One connection, behind its TLS handshake."""

    def __init__(self, server, sock, number):
        self.server = server
        self.sock = sock
        #: From 1, in the order of accept.
        self.number = number
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        self._parts = {}
        self._queue = []
        #: Events of Belfry's that are no part of a request.
        self.events = []
        #: Whether windows are opened again as bodies come in.
        self.grants = True
        self._withheld = {}

    def start(self, **settings):
        """Sends SETTINGS, by their names in h2: `max_concurrent_streams=1`."""
        # Belfry opens no stream before it has them, so they hold from the start.
        self.h2.local_settings = h2.settings.Settings(
            client=False, initial_values=self._codes(settings)
        )
        self.h2.decoder.max_allowed_table_size = self.h2.local_settings.header_table_size
        self.h2.initiate_connection()
        self.flush()
        return self

    def settings(self, **settings):
        """Sends SETTINGS once more."""
        self.h2.update_settings(self._codes(settings))
        self.flush()

    @staticmethod
    def _codes(settings):
        codes = h2.settings.SettingCodes
        return {getattr(codes, name.upper()): value for name, value in settings.items()}

    def flush(self):
        self.raw(self.h2.data_to_send())

    def raw(self, data):
        """Sends bytes of any kind."""
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from error

    def frame(self, frame):
        """Sends a frame of `hyperframe`, past all rules of h2."""
        self.raw(frame.serialize())

    def read(self, limit=None):
        """Reads once and answers what HTTP/2 wants answered. `False`: nothing came in time."""
        self.sock.settimeout(limit)
        try:
            data = self.sock.recv(65_536)
        except TimeoutError:
            return False
        except OSError as error:
            raise Gone(str(error)) from error
        finally:
            self.sock.settimeout(None)
        if not data:
            raise Gone("end of the stream")
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()
        return True

    def _take(self, event):
        kind = type(event)
        if kind is h2.events.RequestReceived:
            unindexed = {f[0] for f in event.headers if isinstance(f, hpack.NeverIndexedHeaderTuple)}
            self._parts[event.stream_id] = (dict(event.headers), bytearray(), unindexed)
        elif kind is h2.events.DataReceived:
            self._parts[event.stream_id][1].extend(event.data)
            size, stream = event.flow_controlled_length, event.stream_id
            if self.grants:
                self.h2.acknowledge_received_data(size, stream)
            else:
                self._withheld[stream] = self._withheld.get(stream, 0) + size
        elif kind is h2.events.StreamEnded:
            headers, body, unindexed = self._parts.pop(event.stream_id)
            request = Request(event.stream_id, headers, bytes(body), self.number, unindexed)
            self._queue.append(request)
            self.server.received.append(request)
        else:
            self.events.append(event)

    def grant(self):
        """Opens the windows by what came while `grants` was off."""
        for stream, size in self._withheld.items():
            self.h2.acknowledge_received_data(size, stream)
        self._withheld = {}
        self.flush()

    def request(self, limit=None):
        """The next whole request. `None`: none came in time."""
        deadline = None if limit is None else time.monotonic() + limit
        while not self._queue:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0 or not self.read(left):
                return None
        return self._queue.pop(0)

    def requests(self, count):
        return [self.request() for _ in range(count)]

    def respond(self, request, status=200, headers=(), body=b""):
        fields = [(":status", str(status)), *headers]
        self.h2.send_headers(request.stream, fields, end_stream=not body)
        if body:
            self.h2.send_data(request.stream, body, end_stream=True)
        self.flush()

    def accept(self, request):
        """As APNs does: 200 with the request's own id."""
        self.server.accepted.append(request.path)
        self.respond(request, 200, [("apns-id", request.headers.get("apns-id", ""))])

    def accept_all(self):
        """Goes on so until Belfry ends the connection."""
        while True:
            self.accept(self.request())

    def wait_for_end(self):
        """Answers nothing any more, and reads until Belfry ends the connection."""
        while True:
            self.read()


def accepting(peer):
    """The behaviour of a server that has nothing to hide."""
    peer.start(max_concurrent_streams=1000).accept_all()


class HTTP2Server:
    def __init__(self, identity, behave=accepting, protocols=("h2",)):
        """`identity`: a PEM file with certificate and key."""
        self.behave = behave
        #: Whole requests, in the order of their ends, over all connections.
        self.received = []
        #: The paths of those that were accepted.
        self.accepted = []
        self.connections = 0
        self.errors = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(identity)
        self._context.set_alpn_protocols(list(protocols))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self._open = set()
        self._isStopping = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            arguments = (sock, self.connections)
            threading.Thread(target=self._run, args=arguments, daemon=True).start()

    def _run(self, sock, number):
        try:
            sock.settimeout(10)
            sock = self._context.wrap_socket(sock, server_side=True)
            sock.settimeout(None)
            # What is written in one go should leave in one go, but at once.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(sock)
            self.behave(Peer(self, sock, number))
        except (Gone, ssl.SSLError):
            pass
        except Exception as error:  # noqa: BLE001 - shown by the test
            if not self._isStopping:
                self.errors.append(error)
        finally:
            self._open.discard(sock)
            sock.close()

    def stop(self):
        self._isStopping = True
        self._listener.close()
        for sock in list(self._open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
