"""Certificates and keys that the tests make, with `cryptography`."""

import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

# Apple's extensions: may push to the development, the production environment.
APNS_DEVELOPMENT = "1.2.840.113635.100.6.3.1"
APNS_PRODUCTION = "1.2.840.113635.100.6.3.2"


def pem_of(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(common_name, uid=None):
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if uid:
        parts.append(x509.NameAttribute(NameOID.USER_ID, uid))
    return x509.Name(parts)


class Authority:
    """Issues certificates: one of its own, or that of an emulator's data directory."""

    def __init__(self, certificate, key):
        self.certificate = certificate
        self.key = key

    @classmethod
    def make(cls, name="Interop authority"):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = cls._builder(_name(name), _name(name), key.public_key(), hours=1)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def of_emulator(cls, directory):
        """`directory`: what the emulator got as --data."""
        folder = pathlib.Path(directory)
        return cls(
            x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()),
            serialization.load_pem_private_key((folder / "ca-key.pem").read_bytes(), None),
        )

    @property
    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @staticmethod
    def _builder(subject, issuer, public_key, hours):
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=2))
            .not_valid_after(now + datetime.timedelta(hours=hours))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), False)
        )

    def _issue(self, builder):
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return builder.add_extension(issuer, False).sign(self.key, hashes.SHA256())

    def for_localhost(self, directory):
        """A server's certificate with its key: the path of a PEM file with both."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(
            _name("localhost"), self.certificate.subject, key.public_key(), hours=1
        )
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        return self._file(directory, "server.pem", self._issue(builder), key)

    def for_apns(self, directory, topic, environments=(APNS_PRODUCTION,), hours=1):
        """A push certificate as Apple's portal makes them, with its key.

        Returns the path of a PEM file with both, and the certificate's SHA-256.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(
            _name(f"Apple Push Services: {topic}", uid=topic),
            self.certificate.subject,
            key.public_key(),
            hours,
        )
        for environment in environments:
            null = x509.UnrecognizedExtension(ObjectIdentifier(environment), b"\x05\x00")
            builder = builder.add_extension(null, False)
        certificate = self._issue(builder)
        path = self._file(directory, "push.pem", certificate, key)
        return path, certificate.fingerprint(hashes.SHA256()).hex()

    @staticmethod
    def _file(directory, name, certificate, key):
        path = pathlib.Path(directory) / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + pem_of(key))
        return str(path)
