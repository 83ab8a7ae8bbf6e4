"""What the gRPC door may be told."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.config import ServerConfig

MIB = 1024 * 1024
IDLE_MS = 15 * 60 * 1000
"""A connection without a call for so long is closed; a client opens another without anybody noticing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcSettings:
    """`port=0` takes a free one. With `tls_certificate` and `tls_key` (PEM) the door speaks TLS only.

    `call_limit_s` ends every call that has an answer, whatever deadline its caller has set. Workers' messages may be
    larger than `max_message_bytes`, up to `max_whole_bytes`: they come in parts. `unread_bytes` bounds what is kept for
    a worker that does not read.
    """

    host: str = "127.0.0.1"
    port: int = 7234
    tls_certificate: bytes | None = None
    tls_key: bytes | None = None
    max_message_bytes: int = 4 * MIB
    max_whole_bytes: int = 80 * MIB
    unread_bytes: int = 256 * MIB
    max_metadata_bytes: int = 16 * 1024
    max_streams: int = 1_000
    max_sessions: int = 10_000
    call_limit_s: float = 30.0
    keepalive_s: float = 20.0
    check_again_s: float = 1.0
    reflection: bool = True
    common: ServerConfig = field(default_factory=ServerConfig)
    """What both doors have in common: how deep and how large a document may be."""

    @property
    def channel_options(self) -> list[tuple[str, int]]:
        """For grpc.aio.server."""
        keepalive_ms = int(self.keepalive_s * 1000)
        return [
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", self.max_metadata_bytes),
            ("grpc.absolute_max_metadata_size", self.max_metadata_bytes),
            ("grpc.max_concurrent_streams", self.max_streams),
            ("grpc.keepalive_time_ms", keepalive_ms),
            ("grpc.keepalive_timeout_ms", keepalive_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            # Workers send pings, too; do not take that for an attack.
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            # Nothing compressed is taken: a small message must not become a large one.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            # Two servers on one port would each get some of the calls.
            ("grpc.so_reuseport", 0),
        ]
