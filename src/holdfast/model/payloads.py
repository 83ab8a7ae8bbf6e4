"""Users' values to their durable form, UTF-8 JSON, and back.

Promises: what `encode` accepts, `decode` gives back when asked with the same type; what has no durable form is refused
with the path to the culprit; whatever is wrong with a value or with stored bytes is a `Payload…` error, nothing else.
Plain values, dataclasses, attrs classes, msgspec structs, enums, dates, UUIDs, decimals, bytes and sets are msgspec's
work. Pydantic models are known by their methods; this module never imports pydantic.

The fast path is one call into msgspec. Everything below "finding the culprit" runs only after a refusal or a suspicion.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from holdfast.errors import PayloadNotDecodable, PayloadNotEncodable, PayloadTooLarge
from holdfast.model.values import NULL

DEFAULT_LIMIT_BYTES: Final = 64 * 1024 * 1024
NO_ARGS: Final = Raw(b"[]")

_SCALARS: Final = (str, int, float)
_ADVICE: Final = "use plain values, dataclasses, msgspec structs or pydantic models"


def encode(value: Any, *, field: str, limit: int = DEFAULT_LIMIT_BYTES) -> Raw:
    """The durable form of `value`; `field` is what errors call it."""
    if value is None:
        return NULL
    try:
        data = _ENCODE(value)
    except Exception as error:  # a user's serializer may raise anything; all of it means the same
        raise _not_encodable(value, field, error) from error
    # msgspec and pydantic write NaN and the infinities as null, which would come back as None.
    # `in` would try it as a number first, and make an exception of that.
    if data.find(b"null") >= 0:
        _refuse_non_finite(value, field)
    if len(data) > limit:
        raise PayloadTooLarge(
            f"{field}: {len(data)} bytes, {limit} are allowed; store it elsewhere and pass a reference",
            field=field,
            size=len(data),
            limit=limit,
        )
    return Raw(data)


def encode_args(args: tuple[Any, ...], *, limit: int = DEFAULT_LIMIT_BYTES) -> Raw:
    """Positional arguments as a JSON array."""
    return encode(args, field="args", limit=limit) if args else NO_ARGS


def split_args(args: tuple[Any, ...], *, limit: int = DEFAULT_LIMIT_BYTES) -> tuple[Raw, ...]:
    """The same, each argument for itself."""
    return tuple(_DECODE_ITEMS(encode_args(args, limit=limit)))


def decode(raw: Raw | bytes, type_hint: Any = Any, *, field: str) -> Any:
    """The value in `raw` as `type_hint`; `field` is what errors call it."""
    try:
        if type(type_hint) is type:  # plain classes, the commonest, can always be looked up
            return _cached_decoder(type_hint)(raw)
        return (_DECODE_ANY if type_hint is Any else _decoder_for(type_hint))(raw)
    except Exception as error:  # a user's validator may raise anything; all of it means the same
        raise _not_decodable(type_hint, field, error) from error


def decode_args(raw: Raw | bytes, hints: Sequence[Any]) -> list[Any]:
    """The arguments in `raw`, each as the type at its place. Fewer than `hints` are fine: the rest has defaults."""
    try:
        items = _DECODE_ITEMS(raw)
    except Exception as error:
        raise _not_decodable(list, "args", error) from error
    if len(items) > len(hints):
        raise PayloadNotDecodable(
            f"args: {len(items)} arguments were given, at most {len(hints)} are taken; "
            "give a new parameter a default and keep old ones, so that recorded calls still fit",
            field="args",
            given=len(items),
            taken=len(hints),
        )
    return [decode(item, hint, field=f"args[{i}]") for i, (item, hint) in enumerate(zip(items, hints, strict=False))]


def is_read_by_msgspec(type_hint: Any) -> bool:
    """Whether msgspec's rules decide what can be read as this type. Raises TypeError if nothing can."""
    return isinstance(getattr(_decoder_for(type_hint), "__self__", None), msgspec.json.Decoder)


# --- what msgspec asks us about -----------------------------------------------------------------------------------


def _is_model(obj: Any) -> bool:
    return hasattr(obj, "model_dump_json") and hasattr(obj, "model_validate_json")


def _flatten(value: Any) -> Any:
    """The encoder's hook: called for whatever msgspec does not know."""
    if isinstance(value, _SCALARS) and not isinstance(value, bool):  # a bool comes here only as a key
        return _plain_scalar(value)
    if isinstance(value, type) or not _is_model(value):
        raise TypeError(_reason(value))
    # As validation wants to see it again: by alias, without computed fields.
    data = value.model_dump_json(by_alias=True, round_trip=True).encode()
    if b"NaN" in data or b"Infinity" in data:
        _DECODE_ANY(data)  # a model can be configured to write them bare, which is not JSON
    return Raw(data)


def _plain_scalar(value: str | float) -> str | float:
    """A subclass of str, int or float (numpy's float64 is one) without its class."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__index__(value) if isinstance(value, int) else float.__float__(value)


def _revive(hint: Any, plain: Any) -> Any:
    """The decoder's hook: called for types msgspec does not know. It adds the path to what is raised here."""
    if hint is object:
        return plain
    if _is_model(hint):
        # By way of JSON, because a strict model takes "2024-01-01" as a date from JSON only.
        return hint.model_validate_json(_ENCODE(plain))
    if isinstance(hint, type) and issubclass(hint, _SCALARS) and type(plain) in hint.__mro__:
        return hint(plain)
    raise TypeError(f"{_name(hint)} is not a type a stored value can be read as: {_ADVICE}")


_ENCODE: Final = msgspec.json.Encoder(enc_hook=_flatten).encode
_DECODE_ANY: Final[Callable[[Raw | bytes], Any]] = msgspec.json.Decoder().decode
_DECODE_ITEMS: Final[Callable[[Raw | bytes], list[Raw]]] = msgspec.json.Decoder(list[Raw]).decode


def _decoder_for(hint: Any) -> Callable[[Raw | bytes], Any]:
    try:
        return _cached_decoder(hint)
    except TypeError:  # not hashable, or not supported and about to say so again
        return _make_decoder(hint)


def _make_decoder(hint: Any) -> Callable[[Raw | bytes], Any]:
    if _is_model(hint):
        return lambda raw: hint.model_validate_json(bytes(raw))
    try:
        return msgspec.json.Decoder(hint, dec_hook=_revive).decode
    except TypeError:
        # msgspec has no unions of foreign types; pydantic has, and is loaded if a model is part of the hint.
        if not _mentions_model(hint):
            raise
        adapter = sys.modules["pydantic"].TypeAdapter(hint)
        return lambda raw: adapter.validate_json(bytes(raw))


_cached_decoder: Final = lru_cache(maxsize=1024)(_make_decoder)


def _mentions_model(hint: Any) -> bool:
    return _is_model(hint) or any(_mentions_model(part) for part in get_args(hint))


def _not_decodable(hint: Any, field: str, error: Exception) -> PayloadNotDecodable:
    reason, found, place = str(error).rpartition(" - at `$")
    if not found:
        reason, place = str(error), ""
    if isinstance(error, RecursionError):
        reason = "nested too deep"
    elif not isinstance(error, ValueError | TypeError | msgspec.MsgspecError):
        reason = f"{type(error).__name__}: {error}"
    path = field + place.rstrip("`")
    return PayloadNotDecodable(
        f"{path}: the stored value can't be read as {_name(hint)}: {reason}",
        field=path,
        hint=_name(hint),
        reason=reason,
    )


def _name(hint: Any) -> str:
    if not isinstance(hint, type) or get_args(hint):
        return str(hint)
    return hint.__qualname__ if hint.__module__ == "builtins" else f"{hint.__module__}.{hint.__qualname__}"


# --- finding the culprit ------------------------------------------------------------------------------------------

_Verdict = Callable[[Any], str | None]
_Parts = Iterator[tuple[str, Any]] | None

_DEPTH_LIMIT: Final = 1_000
_PATH_LIMIT: Final = 200
_LEAVE: Final = object()


def _not_encodable(value: Any, field: str, error: Exception) -> PayloadNotEncodable:
    path, reason = _first_refusal(value, field, _unencodable, _parts) or (field, f"{type(error).__name__}: {error}")
    return _refused(path, reason)


def _refused(path: str, reason: str) -> PayloadNotEncodable:
    short = path if len(path) <= _PATH_LIMIT else path[:_PATH_LIMIT] + "…"
    return PayloadNotEncodable(f"{short}: {reason}", field=short, reason=reason)


def _refuse_non_finite(value: Any, field: str) -> None:
    # MessagePack keeps them as floats with all exponent bits set, so a second encoding finds them about ten times
    # faster than a walk in Python. A match may be something else and a failure may be harmless: then the walk decides.
    try:
        suspicious = _NON_FINITE.search(_PROBE(value)) is not None
    except Exception:  # noqa: BLE001 - JSON carries more than MessagePack (large integers)
        suspicious = True
    if suspicious and (refusal := _first_refusal(value, field, _non_finite, _parts_in_models)):
        raise _refused(*refusal)


def _probe_parts(value: Any) -> Any:
    return _plain_scalar(value) if isinstance(value, _SCALARS) else _model_parts(value)


_PROBE: Final = msgspec.msgpack.Encoder(enc_hook=_probe_parts).encode
_NON_FINITE: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


def _first_refusal(
    value: Any, field: str, verdict: _Verdict, parts_of: Callable[[Any], _Parts]
) -> tuple[str, str] | None:
    """Path and reason of the first part, in reading order, that `verdict` refuses.

    Without recursion: the value may be the one that has just exhausted the stack.
    """
    above: set[int] = set()
    stack: list[tuple[str, Any, Any]] = [(field, value, None)]
    while stack:
        path, part, leaving = stack.pop()
        if leaving is _LEAVE:
            above.discard(id(part))
            continue
        parts = parts_of(part)
        if parts is None:
            if reason := verdict(part):
                return path, reason
            continue
        if id(part) in above:
            return path, "the value contains itself: store a reference by name or number instead"
        if len(above) >= _DEPTH_LIMIT:
            return path, f"nested deeper than {_DEPTH_LIMIT} levels: store it flat"
        above.add(id(part))
        stack.append(("", part, _LEAVE))  # keeps the part alive, so that no other can get its id
        if isinstance(part, dict) and (refusal := _refused_key(part, path, verdict)):
            return refusal
        stack.extend(reversed([(path + step, child, None) for step, child in parts]))
    return None


def _refused_key(part: dict[Any, Any], path: str, verdict: _Verdict) -> tuple[str, str] | None:
    for key in part:
        if type(key) is str:
            reason = verdict(key)
        else:
            reason = f"JSON can't carry a key of type {_name(type(key))}: use text" if verdict({key: 0}) else None
        if reason:
            return path + _step(key), reason
    return None


def _parts(value: Any) -> _Parts:
    """What a value consists of, each part with its step in the path; None for a value without parts."""
    if isinstance(value, dict):
        return ((_step(key), child) for key, child in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ((f"[{i}]", child) for i, child in enumerate(value))
    if isinstance(value, Enum):
        return iter([("", value.value)])
    if isinstance(value, type):
        return None
    if isinstance(value, msgspec.Struct):
        return _attributes(value, value.__struct_fields__)
    if hasattr(value, "__dataclass_fields__"):
        return _attributes(value, [member.name for member in dataclasses.fields(value)])
    if hasattr(value, "__attrs_attrs__"):
        return _attributes(value, [attribute.name for attribute in value.__attrs_attrs__])
    return None


def _parts_in_models(value: Any) -> _Parts:
    return _parts(value if isinstance(value, type) or not _is_model(value) else _model_parts(value))


def _attributes(value: Any, names: Sequence[str]) -> _Parts:
    return ((f".{name}", getattr(value, name)) for name in names if hasattr(value, name))


def _model_parts(value: Any) -> Any:
    """A model's content as it is in memory; nothing for a model that says how to write what JSON has no form for."""
    if not _is_model(value) or getattr(value, "model_config", {}).get("ser_json_inf_nan") == "strings":
        return None
    return value.model_dump(round_trip=True)


def _step(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!a:.60}]"


def _non_finite(leaf: Any) -> str | None:
    if isinstance(leaf, float) and not math.isfinite(leaf):
        return f"{leaf} has no form in JSON: use None or text"
    return None


def _unencodable(leaf: Any) -> str | None:
    try:
        _ENCODE(leaf)
    except UnicodeEncodeError:
        return "the text contains a lone surrogate, which UTF-8 can't carry: clean the text first"
    except Exception as error:  # noqa: BLE001 - as in encode
        return str(error) or type(error).__name__
    return None


_CALLABLES: Final = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)


def _reason(value: Any) -> str:
    if isinstance(value, _CALLABLES):
        return "a function can't be stored"
    if isinstance(value, type):
        return f"a class ({_name(value)}) can't be stored"
    if isinstance(value, types.CoroutineType):
        return "a coroutine can't be stored (is an `await` missing?)"
    return f"a value of type {_name(type(value))} can't be stored: {_ADVICE}"
