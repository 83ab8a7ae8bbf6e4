"""Who is at the door, and what they may do: keys, roles, budgets for wrong keys, the record of acts.

Knows nothing of HTTP or gRPC: it is given the values of the credentials and the address they came from.
"""

from __future__ import annotations

from holdfast.server.auth.authenticator import Authenticator, open_authenticator
from holdfast.server.auth.settings import AuthMode, AuthSettings

__all__ = ["AuthMode", "AuthSettings", "Authenticator", "open_authenticator"]
