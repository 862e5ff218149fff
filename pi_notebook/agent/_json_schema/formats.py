"""The `format`s of JSON Schema that are checked, as strictly as the reference does. Others pass."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping

# Patterns are compiled at their first use (and kept by `re`): importing this module must stay cheap.
_CLOCK = r"(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_CALENDAR = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = rf"P(?:{_CALENDAR}(?:T{_CLOCK})?|T{_CLOCK}|[0-9]+W)"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[zZ]|([+-])([0-9]{2}):([0-9]{2}))"
_DATE_OR_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}"
_LABEL = r"(?i:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)"
_ATOM = r"(?i:[a-z0-9!#$%&'*+/=?^_`{|}~-]+)"
_EMAIL = rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*"
_UUID = r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_SCHEME = r"[a-zA-Z][a-zA-Z0-9+.-]*:"
_ESCAPED = r"%[0-9a-fA-F]{2}"
_NAME = r"a-zA-Z0-9\-._~!$&'()*+,;="
_AUTHORITY = rf"//(?:(?:[{_NAME}:]|{_ESCAPED})*@)?(?:\[[^\]]*\]|(?:[{_NAME}]|[^\x00-\x7f])*)(?::[0-9]*)?(?=[/?#]|\Z)"
_URI = rf"{_SCHEME}(?:{_AUTHORITY}|(?!//))(?:[{_NAME}:@/?#]|{_ESCAPED})*"
_VARIABLE = rf"(?:[a-zA-Z0-9_]|{_ESCAPED})+(?::[1-9][0-9]{{0,3}}|\*)?"
_URI_TEMPLATE = rf"(?:[^\x00-\x20\"'<>%\\^`{{|}}]|{_ESCAPED}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_POINTER_FRAGMENT = rf"#(?:/(?:[a-zA-Z0-9_.!$&'()*+,;:=@-]|{_ESCAPED}|~[01])*)*"


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    try:
        datetime.date(year or 400, month, day)  # year 0 is a leap year that Python does not have
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    found = re.fullmatch(_TIME, text)
    if not found:
        return False
    hour, minute, second = int(found[1]), int(found[2]), int(found[3])
    offset_hour, offset_minute = int(found[5] or 0), int(found[6] or 0)
    if offset_hour > 23 or offset_minute > 59 or second > 60:
        return False
    if second < 60:
        return hour <= 23 and minute <= 59
    sign = -1 if found[4] == "-" else 1  # a leap second, which ends a day of UTC
    return (hour * 60 + minute - sign * (offset_hour * 60 + offset_minute)) % 1440 == 1439


def _is_date_time(text: str) -> bool:
    date, mark, time = text[:10], text[10:11], text[11:]
    return mark in ("T", "t") and _is_date(date) and _is_time(time)


def _is_email(text: str) -> bool:
    return len(text) < 1000 and re.fullmatch(_EMAIL, text) is not None


def _is_idn_email(text: str) -> bool:
    local, at, host = text.rpartition("@")
    return (
        bool(at and local and host)
        and not re.search(r"[\s\"(),:;<>@\[\]\\]|\.\.|^\.|\.$", local)
        and (_is_idn_hostname(host))
    )


def _is_hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(re.fullmatch(_LABEL, label) for label in text.split("."))


def _is_idn_hostname(text: str) -> bool:
    try:
        return _is_hostname(text.encode("idna").decode("ascii"))
    except UnicodeError:
        return False


def _is_ip(text: str, version: int) -> bool:
    import ipaddress

    try:
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def _is_uri_reference(text: str) -> bool:
    return re.fullmatch(r"[!-~]*", text) is not None and not re.search(r"[\[\]{}<>^`|\\]", text)


def _is_iri_reference(text: str) -> bool:
    if re.search(r"[\x00-\x20\x7f\\]|%(?![0-9a-fA-F]{2})", text):
        return False
    from urllib.parse import urlsplit

    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


def _is_iri(text: str) -> bool:
    return re.match(_SCHEME, text) is not None and _is_iri_reference(text)


def _is_regex(text: str) -> bool:
    from .plain import pattern_test

    try:
        pattern_test(text)
    except ValueError:
        return False
    return bool(text)


def _full(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "duration": _full(_DURATION),
    "email": _is_email,
    "hostname": _is_hostname,
    "idn-email": _is_idn_email,
    "idn-hostname": _is_idn_hostname,
    "ipv4": lambda text: _is_ip(text, 4),
    "ipv6": lambda text: _is_ip(text, 6),
    "iri": _is_iri,
    "iri-reference": _is_iri_reference,
    "json-pointer": _full(_POINTER),
    "json-pointer-uri-fragment": _full(_POINTER_FRAGMENT),
    "regex": _is_regex,
    "relative-json-pointer": _full(rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
    "time": _is_time,
    "uri": _full(_URI),
    "uri-reference": _is_uri_reference,
    "uri-template": _full(_URI_TEMPLATE),
    "uuid": _full(_UUID),
}


def _starts_like_a_date_or_time(text: str) -> bool:
    return re.match(_DATE_OR_TIME, text) is not None


# Where pydantic reads the value afterwards, it is the judge of formats; but it takes bare numbers for seconds since
# 1970, which is never what a model meant.
PYDANTIC_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _starts_like_a_date_or_time,
    "date-time": _starts_like_a_date_or_time,
    "time": _starts_like_a_date_or_time,
}

# What a value of the format looks like, for a model that has to mend one.
EXAMPLES: Mapping[str, str] = {
    "date": "2024-01-31",
    "date-time": "2024-01-31T13:45:00Z",
    "duration": "P1DT2H",
    "email": "name@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "13:45:00Z",
    "uri": "https://example.com/path",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}
