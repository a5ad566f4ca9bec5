"""`keras.utils.get_file` without a network: local files with their hashes, and archives.

Lives here: `get_file`.  Not here: reading of files (io/).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import urllib.parse
import urllib.request
import zipfile
from typing import Any

_ALGORITHMS = {32: "md5", 64: "sha256"}
"""Hashes by the length of their digits."""


def get_file(
    fname: Any = None,
    origin: Any = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: Any = None,
    force_download: bool = False,
) -> str:
    """Return the path of a copy of a file in a cache; of the folder of its contents with extract.

    origin: a path of this machine, also as file://. Nothing is loaded from a network: for other origins, the file must
    be in the cache already, under `fname`. cache_dir: ~/.keras, or KERAS_HOME, by default; cache_subdir: inside of it.
    file_hash: digits of sha256 or md5 that the file must have. extract: whether it is a .tar, .tar.gz or .zip archive;
    untar: the same. archive_format: "tar", "zip", several, or "auto". force_download: whether to copy it again.
    raises FileNotFoundError for a file that is nowhere, ValueError for another hash or name
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (a local path or file:// URL).')
    origin = os.fspath(origin)
    scheme = urllib.parse.urlparse(origin).scheme.lower()
    name = os.fspath(fname) if fname is not None else os.path.basename(urllib.parse.urlparse(origin).path)
    if not name or os.path.basename(name) in ("", ".", "..") or ".." in name.replace(os.sep, "/").split("/"):
        raise ValueError(f"Can't parse a file name from {origin!r}: pass a plain one as `fname`. Received: {fname!r}")
    home = cache_dir or os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    folder = os.path.join(os.fspath(home), cache_subdir)
    target = name if os.path.isabs(name) else os.path.join(folder, name)
    digits, algorithm = (md5_hash, "md5") if file_hash is None else (file_hash, hash_algorithm)
    if force_download or not os.path.exists(target) or (digits and not _has_hash(target, digits, algorithm)):
        source = urllib.request.url2pathname(urllib.parse.urlparse(origin).path) if scheme == "file" else origin
        if scheme in ("http", "https", "ftp", "gs", "s3"):
            raise FileNotFoundError(
                f"{origin} is in a network, from which nothing is loaded. Save it as {target}, or pass a local path"
            )
        if not os.path.isfile(source):
            raise FileNotFoundError(f"the file {source!r} does not exist")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.abspath(source) != os.path.abspath(target):
            shutil.copyfile(source, target)
    if digits and not _has_hash(target, digits, algorithm):
        raise ValueError(
            f"Incomplete or corrupted file detected: the {_algorithm(digits, algorithm)} hash of {target} does not "
            f"match the provided value of {digits}."
        )
    if not (extract or untar):
        return target
    contents = f"{target}_extracted"
    _extract(target, contents, archive_format)
    return contents


def _algorithm(digits: str, algorithm: str) -> str:
    if algorithm != "auto":
        return algorithm
    if len(digits) not in _ALGORITHMS:
        raise ValueError(f"a hash has 64 digits (sha256) or 32 (md5); found {len(digits)}: {digits!r}")
    return _ALGORITHMS[len(digits)]


def _has_hash(path: str, digits: str, algorithm: str) -> bool:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, _algorithm(digits, algorithm)).hexdigest() == digits.lower()


def _extract(path: str, folder: str, archive_format: Any) -> None:
    """Extract an archive to a folder, which its members cannot leave. Raises ValueError for another file."""
    kinds = ("tar", "zip") if archive_format in (None, "auto") else archive_format
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if "tar" in kinds and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    elif "zip" in kinds and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            members.extractall(folder)
    else:
        raise ValueError(f"{path} is not an archive of the formats {', '.join(kinds)}")
