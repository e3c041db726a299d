"""The lab's certificate authority: what guests trust when they speak TLS with Google's services in the lab.

Made anew at each start of the lab. The keys are never on a disk: the authority's is forgotten once the one server
certificate is signed, the server's lives in the daemon's memory.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=3650)
"""Longer than any lab runs."""

BUNDLE = "etc/ssl/certs/ca-certificates.crt"
"""Where Debian's and Ubuntu's programs look for authorities; Go's and curl's by this name."""

OPENSSL = {"usr/lib/ssl/cert.pem": f"/{BUNDLE}", "usr/lib/ssl/certs": "/etc/ssl/certs"}
"""OpenSSL's own two names for the same, Python's with it; the image has no openssl package that would make them."""


class Authority:
    """An authority with one server certificate.

    Attributes:
        certificate: The authority's own, as PEM text: what guests trust.
        context: For the server.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Makes both certificates.

        Args:
            names: Host names of the server.
        """
        now = datetime.now(UTC)
        title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "multinic lab")])
        key = ec.generate_private_key(ec.SECP256R1())
        root = (
            _unsigned(title, title, key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(key_cert_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        server_key = ec.generate_private_key(ec.SECP256R1())
        server_title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        server = (
            _unsigned(server_title, title, server_key.public_key(), now)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            # Python 3.13 refuses a chain without it.
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        self.certificate = root.public_bytes(serialization.Encoding.PEM).decode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        private = server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with _in_memory(server.public_bytes(serialization.Encoding.PEM) + private) as path:
            self.context.load_cert_chain(path)

    def write_trust(self, root: Path) -> None:
        """Writes what makes a guest trust this authority, and no other, below the root of its file system."""
        bundle = root / BUNDLE
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_text(self.certificate)
        bundle.chmod(0o644)
        for name, target in OPENSSL.items():
            link = root / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        # The uppermost layer decides a folder's mode in the guest, whatever the umask of who writes it.
        for path in (root, *root.rglob("*/")):
            if not path.is_symlink():
                path.chmod(0o755)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + VALID)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A file that is on no disk: `ssl` takes keys from files only."""
    handle = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(handle, content)
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
